// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What most tests of the verbs need: an open device with a PD and CQs, and QPs in it.
#ifndef TESTS_VERBS_FIXTURE_H
#define TESTS_VERBS_FIXTURE_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <infiniband/verbs.h>
#include <stdbool.h>

#define FAILS_WITH(code, expression)             \
	do {                                     \
		errno = 0;                       \
		assert_null(expression);         \
		assert_int_equal(errno, (code)); \
	} while (0)

struct fixture {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* non-blocking */
	struct ibv_cq *cq; /* of CQE_MAX on the channel */
};

enum {
	CQE_MAX = 64,
	WR_MAX = 8,
	SGE_MAX = 4,
	INLINE_MAX = 64,
};

/* cmocka set-up and tear-down; the state is a struct fixture. The tear-down requires that a test
 * destroyed what it made. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

struct ibv_context *device_open(void);
void fd_make_nonblocking(int fd);

/* RC, of WR_MAX, SGE_MAX and INLINE_MAX, on the fixture's CQ. */
struct ibv_qp_init_attr qp_attr(const struct fixture *f);
struct ibv_qp *qp_make(const struct fixture *f);
int qp_move(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state qp_state(struct ibv_qp *qp);

/* Polls until a completion is there, for some seconds at the most. */
struct ibv_wc wc_wait(struct ibv_cq *cq);
/*
 * Requires that destroy(object) succeeds and does not return before ack(arg) was called, which
 * acknowledges the one event that was read.
 */
void destroy_waits(int (*destroy)(void *), void *object, void (*ack)(void *), void *arg);
/* The next async event; fails when none comes in some seconds. */
struct ibv_async_event async_wait(struct ibv_context *context);

#endif
