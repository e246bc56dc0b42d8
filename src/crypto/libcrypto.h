// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpenSSL 3's libcrypto, and how a library of OpenSSL's is loaded: only where TLS is asked for, so that ours go on needing libc
// alone. Building needs no header of OpenSSL's. The prototypes and numbers here are those that OpenSSL keeps within its major version
// 3; tests/unit/test_openssl.c compares them with its headers.
#ifndef CRYPTO_LIBCRYPTO_H
#define CRYPTO_LIBCRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_LIBCRYPTO_LIBRARY "libcrypto.so.3"
#define AW_LIBCRYPTO_WHY_MAX 160

/* OpenSSL's structs, of which only pointers are known here. */
typedef struct ossl_init_settings_st OPENSSL_INIT_SETTINGS;
typedef struct ossl_lib_ctx_st OSSL_LIB_CTX;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct evp_md_st EVP_MD;
typedef struct engine_st ENGINE;

#include "crypto/libcrypto_functions.h"

enum {
	OPENSSL_INIT_NO_ATEXIT = 0x00080000,
	EVP_CTRL_AEAD_GET_TAG = 0x10,
	EVP_CTRL_AEAD_SET_TAG = 0x11,
};

#define AW_LIBCRYPTO_MEMBER(result, name, parameters) result(*name) parameters;

/* Fixed once loaded. */
struct aw_libcrypto {
	AW_LIBCRYPTO_FUNCTIONS(AW_LIBCRYPTO_MEMBER)
};

/* Valid once aw_libcrypto_load has succeeded. */
extern struct aw_libcrypto aw_libcrypto;

/* dlopen(3). A library that has a dlopen of its own puts libc's here before the first call. */
typedef void *aw_libcrypto_dlopen_fn(const char *file, int flags);
extern aw_libcrypto_dlopen_fn *aw_libcrypto_dlopen;

/*
 * Loads libcrypto, if that was not done. False: there is none that will do, for the process's life; *why (unless NULL) says
 * what to install.
 */
bool aw_libcrypto_load(const char **why) __attribute__((warn_unused_result));

/* The cipher of a suite (enum aw_suite); NULL: libcrypto has it not. */
const EVP_CIPHER *aw_libcrypto_cipher(unsigned suite);

/*
 * One of OpenSSL's libraries, which nobody unloads. NULL: why says what to install. Its functions call OpenSSL's own, also in a
 * program that has others of their names.
 */
void *aw_libcrypto_open(const char *file, char why[AW_LIBCRYPTO_WHY_MAX]);
/* Writes a function's address to *function. False: the library lacks it, and why says so. */
bool aw_libcrypto_find(void *library, const char *name, void *function,
		       char why[AW_LIBCRYPTO_WHY_MAX]) __attribute__((warn_unused_result));

#endif
