// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of conns as they come, for a test to wait for and look at; and a QP that only notes
// which socket it is given.
#ifndef TESTS_LIB_HEARD_H
#define TESTS_LIB_HEARD_H

#include "net/conn/conn.h"

#define HEARD_MAX 64

struct heard {
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned int count;
	struct aw_conn *conn[HEARD_MAX];
	enum aw_conn_event event[HEARD_MAX];
	bool destroy; /* every conn, from its event */
};

#define HEARD_INIT                                                                  \
	{                                                                           \
		.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER \
	}

/* An aw_conn_fn; arg is the struct heard. */
void heard_fn(void *arg, struct aw_conn *conn, enum aw_conn_event event);
/* Waits for the index-th event (from 0), which must be this one; returns its conn. */
struct aw_conn *heard_await(struct heard *h, unsigned int index, enum aw_conn_event event);
/* Waits only. */
void heard_await_count(struct heard *h, unsigned int count);
unsigned int heard_count(struct heard *h);

/* What aw_uqp_attach was given; it answers with err. */
struct fake_qp {
	struct aw_uqp uqp; /* first */
	int err;
	int fd;
	struct aw_stream stream;
	uint32_t segment_size;
};

#endif
