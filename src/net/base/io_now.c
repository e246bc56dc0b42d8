// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The C library's syscall(2), past the one of libanywarp-sockets, which is a cancellation point.
#include "net/base/io_now.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

long (*aw_io_call)(long number, ...);

/* Programs, the checker's faults, libanywarp-sockets and sanitizers have functions of their own before the C library's. */
static bool is_replaced(const char *name)
{
	return dlsym(RTLD_DEFAULT, name) != dlsym(RTLD_NEXT, name);
}

/* A pointer to an object is no pointer to a function in C; POSIX has the two alike. */
static __attribute__((constructor)) void io_call_find(void)
{
	void *found = dlsym(RTLD_NEXT, "syscall");

	if (found && !is_replaced("send") && !is_replaced("recv"))
		memcpy(&aw_io_call, &found, sizeof(found));
}
