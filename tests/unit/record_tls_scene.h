// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two records under TLS on the kernel's own TCP, in memory that processes share. A note of every number that was used to seal is
// kept beside: one that is used twice, or beyond the bound, ends the test.
#ifndef UNIT_RECORD_TLS_SCENE_H
#define UNIT_RECORD_TLS_SCENE_H

#include "../lib/record_tls.h"

#include <poll.h>

#define HELLO "a hello of forty bytes, as sockets have..."
#define HELLO_LEN 40
#define LARGE 150000u

enum {
	CLIENT,
	SERVER
};

/* Where the process is killed: at a seal or a sendmsg, in front of it or behind it. */
enum fate {
	LIVE,
	DIE_BEFORE_SEAL,
	DIE_BEHIND_SEAL,
	DIE_BEFORE_SEND,
	DIE_BEHIND_SEND,
};

extern enum fate fate;
extern int fate_at; /* at so many such calls from now */
extern size_t takes; /* bytes that TCP takes of the next sendmsg; 0: all */
extern bool refuses_hello;
extern int opened; /* TLS records */
extern int fds[2];
extern uint8_t data[LARGE], came[LARGE];

struct aw_record *record_of(int end);

/* Secures both, each time with another suite; connect_records begins them as well. */
void begin(void);
int connect_records(void **state);
int close_records(void **state);

ssize_t send_on(int end, const void *bytes, size_t len);
/* A receive's result once something has come, which is in came then. */
ssize_t receive_on(int end);
/* These bytes come next. */
void expect_at(int end, const void *bytes, size_t len);
/* As aw_record_take_request, when enough has come. */
int take_request(void);

#endif
