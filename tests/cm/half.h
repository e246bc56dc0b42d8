// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One id, whose other end is a bare TCP socket that can say anything.
#ifndef TESTS_HALF_H
#define TESTS_HALF_H

#include "cm.h"

struct half {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *server;
	int listener, fd;
};

/* Our client connects to a TCP server; the Request (revision 2, no private data) arrived there. */
void half_open_client(struct half *half);
/* The same, up to the connection: the Request is still to be read. */
void half_connect_client(struct half *half, struct rdma_conn_param *param);

/* A TCP client is connected to our listener. */
void half_open_server(struct half *half);
/* Its Request came: an id with a QP. */
void half_take_request(struct half *half);

/* All of that with the Request of raw.h, accepted: the Reply came. */
void half_accepted(struct half *half, uint8_t *reply);
/* And the client's first FPDU: ESTABLISHED. */
void half_established(struct half *half);

/* Ends whatever there is; no event may be left. */
void half_close(struct half *half);

#endif
