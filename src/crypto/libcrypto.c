// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "crypto/libcrypto.h"

#include "base/array.h"
#include "crypto/key.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct aw_libcrypto aw_libcrypto;
aw_libcrypto_dlopen_fn *aw_libcrypto_dlopen = dlopen;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(bool) loaded;
static char reason[AW_LIBCRYPTO_WHY_MAX];
static EVP_CIPHER *ciphers[AW_SUITES]; /* NULL: the machine's settings forbid it */

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
void *aw_libcrypto_open(const char *file, char why[AW_LIBCRYPTO_WHY_MAX])
{
	bool apart = program_has_others() && !is_sanitized();
	int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (apart ? RTLD_DEEPBIND : 0);
	void *library = aw_libcrypto_dlopen(file, flags);

	if (!library)
		snprintf(why, AW_LIBCRYPTO_WHY_MAX, "install OpenSSL 3 (Debian: libssl3): %s",
			 dlerror());
	return library;
}

/* A pointer to an object is no pointer to a function in C; POSIX has the two alike. */
bool aw_libcrypto_find(void *library, const char *name, void *function,
		       char why[AW_LIBCRYPTO_WHY_MAX])
{
	void *found = dlsym(library, name);

	if (found)
		memcpy(function, &found, sizeof(found));
	else
		snprintf(why, AW_LIBCRYPTO_WHY_MAX, "OpenSSL has no function %s: install OpenSSL 3",
			 name);
	return found;
}

static bool fetch_ciphers(void)
{
	static const char *const names[AW_SUITES] = { "AES-128-GCM", "AES-256-GCM",
						      "ChaCha20-Poly1305" };
	bool has_one = false;

	for (size_t i = 0; i < AW_SUITES; i++) {
		ciphers[i] = aw_libcrypto.EVP_CIPHER_fetch(NULL, names[i], NULL);
		has_one |= ciphers[i] != NULL;
	}
	return has_one;
}

#define FIND(result, name, parameters) \
	found = found && aw_libcrypto_find(library, #name, &aw_libcrypto.name, reason);

/* Where this is the first use of OpenSSL in the process, exit(3) leaves its tables to the threads that go on. */
static void load(void)
{
	void *library = aw_libcrypto_open(AW_LIBCRYPTO_LIBRARY, reason);
	bool found = library;

	AW_LIBCRYPTO_FUNCTIONS(FIND)
	if (!found)
		return;
	found = aw_libcrypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1 &&
		fetch_ciphers();
	if (!found)
		snprintf(
			reason, sizeof(reason),
			"OpenSSL does not start, or lacks TLS 1.3's ciphers: look at its openssl.cnf");
	atomic_store(&loaded, found);
}

bool aw_libcrypto_load(const char **why)
{
	if (__builtin_expect(atomic_load(&loaded), 1))
		return true;
	(void)pthread_once(&once, load);
	if (why)
		*why = reason;
	return atomic_load(&loaded);
}

const EVP_CIPHER *aw_libcrypto_cipher(unsigned suite)
{
	return ciphers[suite - AW_SUITE_AES_128_GCM_SHA256];
}
