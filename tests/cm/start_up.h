// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bare peer in MPA start-up: frames of RFC 6581 made and read by hand; and a process of its own
// for each list of ANYWARP_MPA, which is read once a process.
#ifndef TESTS_START_UP_H
#define TESTS_START_UP_H

#include "half.h"
#include "raw.h"

#define PLAIN RAW_PLAIN_LEN /* octets of a frame without private data */
#define ENHANCED RAW_REQUEST_LEN

enum {
	M = 0x80,
	C = 0x40,
	R = 0x20,
	S = 0x10
};
enum {
	SEND = 1,
	WRITE = 2,
	READ = 4
};
enum {
	NONE = 0x3fff
};

/* The flags octet without the private extension's bits. */
#define FLAGS(frame) ((frame)[16] & 0xf0)

/* Runs fn in a child whose policy is list. This process must never have called the library. */
void in_child(const char *list, void (*fn)(void));

uint16_t word(const uint8_t *p);

/* Frames of revision 2: depth is IRD and ORD; rtr of 0 is the client-server model. */
void send_reply(int fd, uint8_t flags, uint8_t rtr, uint16_t depth);
void send_request(int fd, uint8_t flags, uint8_t rtr, uint16_t depth);

/* Which RTRs a frame names; 0 also where A is 0, and then B, C and D must be. */
uint8_t rtr_of(const uint8_t *frame);

/* Our client's Request arrived. */
void get_request(struct half *half, uint8_t frame[ENHANCED]);

/* A listener's Reply to the Request that was sent, which the program accepts. */
void get_reply(struct half *half, uint8_t frame[ENHANCED]);

#endif
