// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What src/kmod's shim headers tell a test: where another thread, or a program that has a ring mapped, may
// come in between. A test that sets neither hook runs straight on.
#ifndef KSHIM_H
#define KSHIM_H

#include <stdbool.h>
#include <stddef.h>

/* These octets were read once, and are not looked at again: what is there may change now. */
extern void (*kshim_on_read)(const volatile void *at, size_t len);

/* As loads.c has it: such a load comes next, be it by one of the headers or not. */
extern void (*kshim_on_load)(const volatile void *at, size_t len);

/*
 * Another thread may run. must: the caller cannot go on until it did; where no hook is set nothing would ever
 * change, and the process aborts.
 */
extern void (*kshim_on_yield)(bool must);

static inline void kshim_read(const volatile void *at, size_t len)
{
	if (kshim_on_read)
		kshim_on_read(at, len);
}

void kshim_yield(bool must);

/* Aborts, a test's way where it has one: the module did what its kernel would take for a bug. */
extern void (*kshim_on_bug)(const char *claim, const char *file, int line);
void kshim_bug(const char *claim, const char *file, int line) __attribute__((noreturn));

#define KSHIM_CHECK(claim)                                     \
	do {                                                   \
		if (!(claim))                                  \
			kshim_bug(#claim, __FILE__, __LINE__); \
	} while (0)

/* Allocations that are not freed yet; and one of them, that is to fail: 0 none, 1 the next. */
extern unsigned long kshim_allocated;
extern unsigned long kshim_alloc_fails;

#endif
