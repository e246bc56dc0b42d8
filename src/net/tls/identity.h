// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer as its certificate has it, for the program, the log and 'anywarp stat'. It outlives the session.
#ifndef NET_TLS_IDENTITY_H
#define NET_TLS_IDENTITY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AW_TLS_IDENTITY_NAME_MAX 256 /* bytes of a name, with its NUL */

/* Fixed once made, but for refs: the last put, which releases, frees behind every use of others, which acquires. */
struct aw_tls_identity {
	_Atomic uint32_t refs;
	/* The DNS name of the certificate by which the peer was let in; where none was asked for its subject, which begins with '/'. */
	char name[AW_TLS_IDENTITY_NAME_MAX];
	size_t der_len;
	uint8_t der[]; /* the certificate */
};

struct aw_tls_identity *aw_tls_identity_get(struct aw_tls_identity *identity);
void aw_tls_identity_put(struct aw_tls_identity *identity); /* takes NULL */

#endif
