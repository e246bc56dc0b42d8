// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client's processes: this one, or for fan-in and fan-out as many children with a connection
// each, which run a phase together whenever this one says so.
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "worker/session.h"

#include <sys/types.h>

#define PEERS_MAX 64

typedef struct moved (*peers_phase)(struct session *session, double seconds);

struct peers {
	struct session *session;
	peers_phase phase;
	unsigned int count; /* children; 0: this process alone */
	int fds[PEERS_MAX];
	pid_t pids[PEERS_MAX];
};

/* Of all processes together. */
struct peers_result {
	struct moved moved;
	struct cpu cpu;
};

/* Starts the processes and makes their connections. */
void peers_start(struct peers *peers, struct session *session, peers_phase phase);
struct peers_result peers_run(struct peers *peers, double seconds);
void peers_end(struct peers *peers);

#endif
