// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two pipes that wake the ends of a connection through memory: each end hears its own and rings the
// other's. A pipe wakes a sleeper in half the time that TCP takes. The responder makes them, and the
// initiator opens them under /proc, as it opens the memory, once so many bells have gone over TCP that
// they are worth their set-up. Each end has a pipe open for reading and writing, so the end of the other
// one raises neither SIGPIPE nor a hang-up.
#ifndef NET_BELLS_H
#define NET_BELLS_H

#include "core/types.h"

#include <stdbool.h>
#include <stdint.h>

/* Connections of a process that have pipes; the others ring over TCP. Theirs are an eighth of the pages that a user may have in pipes. */
#define AW_BELLS_MAX 1024
/* That many of the fds that the process may have, for each such connection: the pipes take a quarter of all at the most. */
#define AW_BELLS_SHARE 8

struct aw_bells {
	int own, peers; /* fds of pipes; -1: there are none */
};

/* The name of a pipe for the other end. The inode's number tells it from a later owner of the fd. */
struct aw_bells_name {
	uint32_t fd;
	uint64_t inode;
};

/* How many connections may have pipes now: AW_BELLS_MAX, or fewer where RLIMIT_NOFILE is low. */
uint32_t aw_bells_places(void);

/*
 * Responder: names are those of the responder's pipe and of the initiator's. Where there can be no
 * pipes, names may be anything.
 */
void aw_bells_make(struct aw_bells *bells, struct aw_bells_name names[2]);

/* Initiator: opens the pipes of that process. False: there are none, or it is of another PID namespace. */
bool aw_bells_open(struct aw_bells *bells, uint32_t pid,
		   const struct aw_bells_name names[2]) AW_MUST_USE;

/* Closes the pipes if there are any. */
void aw_bells_close(struct aw_bells *bells);

/* Wakes the peer; a full pipe wakes it already. */
void aw_bells_ring(const struct aw_bells *bells);

/* Reads the bells that have been rung. False when there was none. */
bool aw_bells_drain(const struct aw_bells *bells);

#endif
