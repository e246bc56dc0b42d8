// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/openssl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define WHY_MAX 160

struct aw_openssl aw_openssl;

/* A pointer to an object is no pointer to a function in C; POSIX has the two alike. */
static bool find(void *library, const char *name, void *function, char why[WHY_MAX])
{
	void *found = dlsym(library, name);

	if (found)
		memcpy(function, &found, sizeof(found));
	else
		snprintf(why, WHY_MAX, AW_OPENSSL_LIBRARY " has no function %s: install OpenSSL 3",
			 name);
	return found;
}

#define FIND(result, name, parameters) found = found && find(library, #name, &aw_openssl.name, why);

/*
 * Nobody unloads the library: sessions live until the process ends. Where this library is the first to begin OpenSSL in the
 * process, exit(3) does not take its tables from under the progress thread.
 */
bool aw_openssl_load(const char **reason)
{
	static char why[WHY_MAX];
	void *library = dlopen(AW_OPENSSL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	bool found = library;

	*reason = why;
	if (!library) {
		snprintf(why, WHY_MAX, "install OpenSSL 3 (Debian: libssl3): %s", dlerror());
		return false;
	}
	AW_OPENSSL_FUNCTIONS(FIND)
	if (found && aw_openssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
		snprintf(why, WHY_MAX, "OpenSSL does not start: look at its openssl.cnf");
		found = false;
	}
	return found;
}
