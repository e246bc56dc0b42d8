// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/openssl.h"

#include "base/array.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define WHY_MAX 160

struct aw_openssl aw_openssl;
aw_openssl_open_fn *aw_openssl_open = dlopen;

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

static bool is_openssls(const void *function)
{
	Dl_info in;

	return dladdr(function, &in) != 0 &&
	       (strstr(in.dli_fname, "/libcrypto.so.3") || strstr(in.dli_fname, "/libssl.so.3"));
}

/*
 * A program may have functions of these names that are another library's: OpenSSL 1.1, or BoringSSL or OpenSSL linked into it
 * and exported. libssl would call those.
 */
static bool program_has_others(void)
{
	static const char *const names[] = {
		"CRYPTO_malloc",      "ERR_clear_error",   "ERR_put_error", "BIO_new",
		"EVP_CIPHER_CTX_new", "EVP_DigestInit_ex", "RAND_bytes",    "SSL_new",
		"X509_free",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const void *found = dlsym(RTLD_DEFAULT, names[i]);

		if (found && !is_openssls(found))
			return true;
	}
	return false;
}

/* The run-time libraries of these sanitizers end a program that keeps a library apart. */
static bool is_sanitized(void)
{
	return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") ||
	       dlsym(RTLD_DEFAULT, "__msan_init");
}

/* With DEEPBIND the library's own functions come before the program's. */
static int load_flags(void)
{
	bool apart = program_has_others() && !is_sanitized();

	return RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (apart ? RTLD_DEEPBIND : 0);
}

bool aw_openssl_is_alive(void)
{
	return aw_openssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
}

/*
 * Nobody unloads the library: sessions live until the process ends. Where this library is the first to begin OpenSSL in the
 * process, exit(3) does not take its tables from under the progress thread.
 */
bool aw_openssl_load(const char **reason)
{
	static char why[WHY_MAX];
	void *library = aw_openssl_open(AW_OPENSSL_LIBRARY, load_flags());
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
