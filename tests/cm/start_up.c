// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bare peer in MPA start-up.
#include "start_up.h"

#include <stdlib.h>
#include <string.h>

void in_child(const char *list, void (*fn)(void))
{
	setenv("ANYWARP_MPA", list, 1);
	assert_int_equal(cm_in_child(fn), 0);
}

uint16_t word(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* An enhanced frame. */
static void make(uint8_t *frame, const char *key, uint8_t flags, uint8_t rtr, uint16_t depth)
{
	uint16_t ird = (uint16_t)(depth | (rtr ? 0x8000 : 0) | (rtr & SEND ? 0x4000 : 0));
	uint16_t ord = (uint16_t)(depth | (rtr & WRITE ? 0x8000 : 0) | (rtr & READ ? 0x4000 : 0));
	const uint8_t rest[] = {
		(uint8_t)(flags | S), 2,	   0, 4, (uint8_t)(ird >> 8), (uint8_t)ird,
		(uint8_t)(ord >> 8),  (uint8_t)ord
	};

	memcpy(frame, key, 16);
	memcpy(frame + 16, rest, sizeof(rest));
}

void send_reply(int fd, uint8_t flags, uint8_t rtr, uint16_t depth)
{
	uint8_t frame[ENHANCED];

	make(frame, "MPA ID Rep Frame", flags, rtr, depth);
	raw_send(fd, frame, sizeof(frame));
}

void send_request(int fd, uint8_t flags, uint8_t rtr, uint16_t depth)
{
	uint8_t frame[ENHANCED];

	make(frame, "MPA ID Req Frame", flags, rtr, depth);
	raw_send(fd, frame, sizeof(frame));
}

uint8_t rtr_of(const uint8_t *frame)
{
	uint16_t ird = word(frame + 20), ord = word(frame + 22);
	uint8_t rtr = (uint8_t)((ird & 0x4000 ? SEND : 0) | (ord & 0x8000 ? WRITE : 0) |
				(ord & 0x4000 ? READ : 0));

	assert_true(rtr == 0 || (ird & 0x8000));
	return rtr;
}

void get_request(struct half *half, uint8_t frame[ENHANCED])
{
	half_connect_client(half, NULL);
	raw_recv(half->fd, frame, ENHANCED);
	assert_memory_equal(frame, "MPA ID Req Frame", 16);
	assert_int_equal(frame[17], 2);
}

void get_reply(struct half *half, uint8_t frame[ENHANCED])
{
	half_take_request(half);
	assert_int_equal(rdma_accept(half->server, NULL), 0);
	raw_recv(half->fd, frame, ENHANCED);
	assert_memory_equal(frame, "MPA ID Rep Frame", 16);
	assert_int_equal(frame[17], 2);
}
