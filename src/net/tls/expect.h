// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session lets in a peer whose certificate has a name of its rule's, or that of ANYWARP_TLS_NAME, or the address that this end
// connects to. A full handshake has OpenSSL compare them; a session that resumes is compared here.
#ifndef NET_TLS_EXPECT_H
#define NET_TLS_EXPECT_H

#include "net/tls/alpn.h"
#include "net/tls/openssl.h"
#include "net/tls/want.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct aw_tls_expect {
	struct sockaddr_storage peer;
	const char *
		names; /* each with its NUL, in a row; valid until the handshake is done, as the rule is */
	uint32_t name_count;
	uint32_t rule_line; /* of the rule that has the names; 0: none */
	bool by_address; /* peer's has to be in the certificate */
	const char *alpn; /* the protocol inside, which both ends name; NULL: the program's own */
};

/* accepts: the peer has connected, from any address. Without names each one of the CA is let in then. */
void aw_tls_expect_init(struct aw_tls_expect *expect, const struct sockaddr *peer, bool accepts,
			const struct aw_tls_want *want);

/*
 * Has OpenSSL verify that, and, where this end connects, ask for the first name and for the protocol; expect outlives ssl. False:
 * memory is out.
 */
bool aw_tls_expect_set(struct aw_tls_expect *expect, SSL *ssl, bool accepts)
	__attribute__((warn_unused_result));

/* The expectation that was set for the session; NULL: none. */
struct aw_tls_expect *aw_tls_expect_of(const SSL *ssl);

/* True when a certificate that was verified earlier is valid now, and of such a peer. Takes NULL. */
bool aw_tls_expect_holds(const struct aw_tls_expect *expect, const X509 *cert);

/* The name of the certificate that one of the names has matched; where there are none, its subject. */
void aw_tls_expect_name(const struct aw_tls_expect *expect, const X509 *cert, char *name,
			size_t size);

#endif
