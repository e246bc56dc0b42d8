// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The deadlines of peers (base/startup_time.h). A socket keeps its own (aw_sock.due_ns); the threads that wait in poll(2) and the like
// look again at the first one of all. No call takes a lock.
#ifndef XSOCK_PROCESS_DEADLINE_H
#define XSOCK_PROCESS_DEADLINE_H

#include <stdint.h>

#define AW_DEADLINE_NEVER INT64_MAX

/*
 * Another process that has a socket may begin its connection: nothing in the kernel wakes a thread that waits for the socket then,
 * and each looks this often.
 */
#define AW_DEADLINE_LOOK_NS 10000000

/* Returns the deadline of a peer whose time begins now, which the waiting threads are told. */
int64_t aw_deadline_begin(void);
/* Tells the waiting threads of a deadline. */
void aw_deadline_note(int64_t due_ns);
/* Returns the time before which no peer's is over, or AW_DEADLINE_NEVER. */
int64_t aw_deadline_first_ns(void);
/* The same, and forgets it: the caller looks at all sockets, and notes the deadlines that are still to come. */
int64_t aw_deadline_take_first_ns(void);

#endif
