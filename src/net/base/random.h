// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's random bytes, fetched many at a time, for numbers that nobody shall guess: a connection needs some of a few bytes each,
// and a system call for each costs more than the bytes do.
#ifndef NET_RANDOM_H
#define NET_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* getentropy(3) gives no more at once. */
#define AW_RANDOM_POOL 256

/*
 * Writes len bytes that no other call has had or gets, in no process: the pool keeps no byte that it gives out, and is empty in the child of
 * any fork. More than AW_RANDOM_POOL are not asked for. 0, or EIO: the kernel gives none.
 */
int aw_random_take(void *octets, size_t len) __attribute__((warn_unused_result));

#endif
