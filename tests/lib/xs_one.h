// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One stream of extended sockets, and a peer whose octets the test writes.
#ifndef LIB_XS_ONE_H
#define LIB_XS_ONE_H

#include "xsock/stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ONE_LEN 4096u
#define ONE_QUEUE 16u
#define ONE_MAPS 2u
#define ONE_PEER_SGL 0x1000u
#define ONE_PEER_RING 0x100000u

extern struct one {
	struct aw_xs_stream s;
	uint8_t send[ONE_LEN], recv[2 * ONE_LEN];
	uint8_t target[AW_XS_SGL_MAX * AW_XS_SGE_LEN + ONE_MAPS * AW_XS_IOMAP_LEN];
	struct aw_xs_work work; /* the last one */
} one;

extern const struct aw_xs_hello one_peer;

void one_init(void);
/* init, and the peer's private data. */
int one_meet(const struct aw_xs_hello *hello);
/* Up, and all buffers advertised; one_setup: with one_peer. */
void one_open(const struct aw_xs_hello *hello);
int one_setup(void **state);

bool one_next(void);
void one_done(void);
void one_said(enum aw_xs_op op, uint32_t data);
size_t one_put(const char *text);
size_t one_put_octets(size_t len);

int one_hear(enum aw_xs_op op, uint32_t data);
void one_advertise(uint32_t entry, const struct aw_xs_sge *sge);
size_t one_get_octets(size_t len);

#endif
