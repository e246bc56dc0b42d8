// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two endpoints of extended sockets in one process, connected over loopback.
#ifndef TESTS_XSOCK_ENDS_H
#define TESTS_XSOCK_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "xsock/endpoint/ep.h"

#include <netinet/in.h>

#define SECOND 1000000000ll
#define LONG (20 * SECOND) /* far more than anything takes: a test that needs it has failed */

struct ends {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct sockaddr_in address;
	struct aw_xs_ep *client, *server;
};

/* An id on 127.0.0.1 that has its port, and does not listen; and a listener. */
void ends_bind(struct ends *ends);
void ends_listen(struct ends *ends);
/* Two endpoints, by rdma_cm; both established. */
void ends_open(struct ends *ends, const struct aw_xs_options *options);
/* What is left of them. */
void ends_close(struct ends *ends);

struct aw_xs_ep *ends_create(const struct aw_xs_options *options);

/* An established TCP connection. */
void ends_sockets(int fd[2]);

/* The octet at a position of the stream that tests send. */
uint8_t ends_octet(uint64_t at);

/* Both wait; send takes len octets of the stream from position at on, recv checks them. */
void ends_send(struct aw_xs_ep *ep, uint64_t at, size_t len);
void ends_recv(struct aw_xs_ep *ep, uint64_t at, size_t len);
void ends_send_text(struct aw_xs_ep *ep, const char *text, int flags);
void ends_recv_text(struct aw_xs_ep *ep, const char *text, int flags);

/* One recv of one octet answers this, now. */
void ends_expect(struct aw_xs_ep *ep, ssize_t answer);

/* Waits for events, and has them. */
void ends_wait(struct aw_xs_ep *ep, short events);

#endif
