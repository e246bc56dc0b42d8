// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/openssl.h"

#include <stdio.h>

struct aw_openssl aw_openssl;

bool aw_openssl_is_alive(void)
{
	return aw_openssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
}

#define FIND(result, name, parameters) \
	found = found && aw_libcrypto_find(library, #name, &aw_openssl.name, why);

/*
 * Where this library is the first to begin OpenSSL in the process, exit(3) does not take its tables from under the progress
 * thread.
 */
bool aw_openssl_load(const char **reason)
{
	static char why[AW_LIBCRYPTO_WHY_MAX];
	void *library;
	bool found;

	if (!aw_libcrypto_load(reason))
		return false;
	*reason = why;
	library = aw_libcrypto_open(AW_OPENSSL_LIBRARY, why);
	found = library;
	AW_OPENSSL_FUNCTIONS(FIND)
	if (found && !aw_openssl_is_alive()) {
		snprintf(why, sizeof(why), "OpenSSL does not start: look at its openssl.cnf");
		found = false;
	}
	return found;
}
