// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer of the roce persona in a process of its own, which stops or dies where it is told to.
#ifndef TESTS_VERBS_VICTIM_H
#define TESTS_VERBS_VICTIM_H

#include "walk.h"

#include <sys/types.h>

enum {
	VICTIM_MEMORY = 256 * 1024, /* what either end lends the other */
	VICTIM_MESSAGE = 16,
};

/* What the two ends tell each other. */
struct victim_hello {
	uint64_t addr; /* VICTIM_MEMORY octets */
	uint32_t rkey;
	uint32_t qpn;
};

/* The state in which it sends itself the signal. */
enum victim_step {
	VICTIM_INIT,
	VICTIM_RTR,
	VICTIM_RTS,
	VICTIM_SERVES, /* no signal: it echoes Sends of VICTIM_MESSAGE octets until it is killed */
};

struct victim {
	pid_t pid;
	struct victim_hello hello;
};

/*
 * Starts one for a QP of ours, and learns its QP's number. life_us: a time after which the kernel kills it; 0:
 * never.
 */
void victim_start(struct victim *v, const struct victim_hello *ours, enum victim_step step,
		  int signum, unsigned int life_us);
/* Returns when it has stopped, or died, of this signal. */
void victim_await(struct victim *v, int signum);
/* Kills it and waits for its end. */
void victim_kill(struct victim *v);

/* For main: the victim's life, when the arguments are those of victim_start; else false. */
bool victim_main(int argc, char **argv);

#endif
