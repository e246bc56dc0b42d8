// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What carries blocks from one filter to the next. Each program has one kind of link: TCP, one-sided writes of extended
// sockets, or verbs. A link is used by one thread in each direction. Whatever fails ends the program.
#ifndef PIPELINE_LINK_H
#define PIPELINE_LINK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define BLOCK_MAX (1u << 20)
/* A sender may be so many blocks ahead of its receiver, less one: who sends keeps to fewer. */
#define LINK_SLOTS 16u

enum kind {
	KIND_HELLO, /* arg: what the server is to do */
	KIND_FULL, /* a block of a full update */
	KIND_PARTIAL, /* all of a partial update; arg: when it was asked for, ns */
	KIND_WORK, /* a block to work on; arg: how much slower than usual */
	KIND_DONE, /* arg: the sum over the block */
	KIND_END
};

/* As it is on the wire, between two processes of one machine. */
struct header {
	uint32_t kind;
	uint32_t len; /* of the payload, at most BLOCK_MAX */
	uint64_t id;
	uint64_t arg;
};

struct link;

extern const char link_name[];

void link_listen(const struct sockaddr_in *at);
struct link *link_accept(void);
struct link *link_connect(const struct sockaddr_in *to);

/* Where the payload of the next block goes; waits until it is free. */
void *link_buffer(struct link *link);
void link_send(struct link *link, const struct header *header);

/* The payload stays until the next call. False at the end of the connection. */
bool link_recv(struct link *link, struct header *header, const void **payload);
void link_close(struct link *link);

#endif
