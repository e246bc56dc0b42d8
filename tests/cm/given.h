// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections over sockets that the program has connected: include/anywarp/cm.h.
#ifndef TESTS_GIVEN_H
#define TESTS_GIVEN_H

#include "half.h"

/* Both ends of a TCP connection, blocking. */
void given_pair(int fds[2]);

/* ends without a listening socket: client may connect, listener waits for the Request on fds[1]. */
void given_open(struct cm_ends *ends, int fds[2]);

/* One of the ends; the other one is a bare socket. The Request was sent and read there; or is awaited. */
void given_open_initiator(struct half *half);
void given_open_responder(struct half *half);

/* Fresh, on channel. */
struct rdma_cm_id *given_id(struct rdma_event_channel *channel);

/* Connected by way of cm_ends_connect: one message each way arrives. */
void given_talk(struct cm_ends *ends);

#endif
