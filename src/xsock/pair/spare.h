// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hidden fd that a process keeps for calls that are made again and again: one thread at a time has it, and another one opens its own.
// The child of a fork opens its own, too.
#ifndef XSOCK_PAIR_SPARE_H
#define XSOCK_PAIR_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Static, and zero at first. */
struct aw_spare_place {
	_Atomic(uint64_t)
		kept; /* the process that has opened it, and the fd plus one in the lower half; 0: none */
	_Atomic(uint64_t) ino; /* the file that the fd must still be */
};

struct aw_spare {
	struct aw_spare_place *place;
	int fd;
	uint64_t ino;
};

/* Takes the fd that is kept in the place, or opens one. Returns it, or -1. */
int aw_spare_take(struct aw_spare *spare, struct aw_spare_place *place, int (*open_fd)(void));
/* Keeps the fd unless another thread's is kept. usable: nothing is left in it. */
void aw_spare_give_back(const struct aw_spare *spare, bool usable);

#endif
