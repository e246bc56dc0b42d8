// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the C library's functions.
#include "xsock/base/libc.h"

#include <dlfcn.h>
#include <string.h>

struct aw_libc aw_libc_table;

/* Stores dlsym()'s result in *function without a cast that ISO C forbids. */
static void find_function(const char *name, void *function)
{
	void *address = dlsym(RTLD_NEXT, name);

	memcpy(function, &address, sizeof(address));
}

void *aw_libc_newer(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Two threads that call this at once write the same values. */
void aw_libc_find(void)
{
#define FIND(name) find_function(#name, &aw_libc_table.name);
	AW_LIBC_FUNCTIONS(FIND)
#undef FIND
	__atomic_store_n(&aw_libc_table.found, true, __ATOMIC_RELEASE);
}
