// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/base/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct aw_real functions;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Many functions of verbs have an older version, IBVERBS_1.0, with other structures; before glibc
 * 2.36 dlsym finds that one. POSIX has dlsym give a function as an object's pointer; the copy says
 * so to the compiler.
 */
static void function_find(void *member, const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");

	if (!found)
		found = dlsym(RTLD_NEXT, name);
	memcpy(member, &found, sizeof(found));
}

static void functions_find(void)
{
#define AW_REAL_FIND(name) function_find(&functions.name, #name);
	AW_REAL_FUNCTIONS(AW_REAL_FIND)
#undef AW_REAL_FIND
}

const struct aw_real *aw_real(void)
{
	pthread_once(&once, functions_find);
	return &functions;
}
