// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the Nth call of a kind fail, of those that the linker diverted to us: memory, fds, and what
// else of the system may say no. In memory shared with the parent, so that it outlives a crash.
#ifndef FAULTS_INJECT_H
#define FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SITES_MAX 256

enum inject_kind {
	INJECT_MEMORY, /* malloc, calloc, realloc: ENOMEM */
	INJECT_FD, /* socket, accept4, eventfd, epoll_create1, ...: EMFILE */
	INJECT_SYSTEM, /* threads, epoll_ctl's add, fork handlers, randomness */
	INJECT_KINDS
};

/* A place that calls, by its return address. */
struct inject_site {
	_Atomic(void *) caller;
	_Atomic uint32_t calls, failures;
};

struct inject {
	_Atomic bool armed;
	enum inject_kind kind;
	uint32_t first, count; /* the first call to fail, from 1, and how many in a row */
	_Atomic uint32_t calls; /* of that kind while armed */
	_Atomic uint32_t failures;
	_Atomic int64_t live; /* allocations not given back */
	struct inject_site site[SITES_MAX];
};

extern struct inject *inject;

void inject_init(void);
/* From now on the calls first to first + count - 1 of this kind fail; 0: none, they are counted. */
void inject_arm(enum inject_kind kind, uint32_t first, uint32_t count);
void inject_disarm(void);
/* Prints each site that was called and never failed; how many there are. */
unsigned int inject_untried(void);
unsigned int inject_sites(void);

#endif
