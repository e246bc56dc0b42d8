// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the tests of rdma_cm share: ids on either side of a connection within one process.
#ifndef TESTS_CM_H
#define TESTS_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define EVENT_MS 20000 /* far more than any event takes: a test that needs it has failed */

struct cm_ends {
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener, *server, *client;
};

/* The one channel of a program's tests, with cmocka's set-up and tear-down of the group: in the end nothing waits on it. */
extern struct rdma_event_channel *cm_channel;
int cm_open_channel(void **state);
int cm_close_channel(void **state);

/* An address with port in host order. */
struct sockaddr_storage cm_address(const char *ip, uint16_t port);

/* The next event, which must be of this type and status; ack it. */
struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				int status);
void cm_expect_ack(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);

/* Nothing waits on the channel. */
void cm_expect_none(struct rdma_event_channel *channel);

/* A new id bound to ip and any port. */
struct rdma_cm_id *cm_bound(struct rdma_event_channel *channel, const char *ip);

/* The same, listening. */
struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, const char *ip, int backlog);

/* A new id with its route to ip and port (host order) resolved, and a QP. */
struct rdma_cm_id *cm_resolved(struct rdma_event_channel *channel, const char *ip, uint16_t port);

void cm_make_qp(struct rdma_cm_id *id);

/* With its QP. */
void cm_destroy(struct rdma_cm_id *id);

uint16_t cm_port(struct rdma_cm_id *id);

/* Both channels, a listener on ip, and a client resolved to it. */
void cm_ends_open(struct cm_ends *ends, const char *ip);
/* connect on the client, and the next: the Request's id with a QP in ends->server. */
void cm_ends_request(struct cm_ends *ends);
void cm_ends_take_request(struct cm_ends *ends);
/* Accepted, and established on both ends; and all of it. */
void cm_ends_accept(struct cm_ends *ends);
void cm_ends_connect(struct cm_ends *ends);
/* rdma_disconnect on the client, DISCONNECTED on both. */
void cm_ends_disconnect(struct cm_ends *ends);
void cm_ends_close(struct cm_ends *ends);

#define CM_CHILD_SKIPS 77

/* Runs fn in the child of a fork and returns its exit status; a failed assertion is 1. */
int cm_in_child(void (*fn)(void));
/* The same; the child has to return, and the test is skipped where it has left with CM_CHILD_SKIPS. */
void cm_pass_in_child(void (*fn)(void));

#define CM_LOG_MAX 4096
/* Writes what the library says on standard error while fn runs. */
void cm_take_log(void (*fn)(void), char text[CM_LOG_MAX]);

/* It contains the words. */
void cm_expect_log(void (*fn)(void), const char *words);

/* Shortens what start-up may take. */
void cm_set_startup_ms(uint32_t ms);

/* The same for the time until a peer is told that its Request is not answered yet. */
void cm_set_wait_ms(uint32_t ms);

/* The same for how long a peer may be silent though asked. */
void cm_set_lost_ms(uint32_t ms);

/* The same for the time from DISCONNECTED to TIMEWAIT_EXIT. */
void cm_set_timewait_ms(uint32_t ms);

/* All are what users have: cmocka's setup of a test that may follow one which shortened them. */
int cm_reset_bounds(void **state);

#endif
