// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Certificates for tests of TLS, made by the openssl command in a folder of the test's own, and the environment that names them.
#ifndef TESTS_LIB_TLS_FILES_H
#define TESTS_LIB_TLS_FILES_H

#define TLS_FILES_NAME \
	"cluster" /* what both ends are called, in their certificate and by ANYWARP_TLS_NAME */

/*
 * cmocka's set-up and tear-down of a group. The environment then requires TLS with these files: own.pem with own.key, and ca.pem. Beside
 * them are other certificates for own.key: old.pem has expired, other.pem is for another name, foe.pem is of an authority that
 * nobody trusts.
 */
int tls_files_make(void **state);
int tls_files_remove(void **state);
/* The path of one of them. It is valid until the fourth call after this one. */
char *tls_files_path(const char *name);

#endif
