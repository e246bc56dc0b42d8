// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two sessions of TLS over sockets between which the test passes on what they send. Their certificates: tls_files.h.
#ifndef TESTS_LIB_TLS_LINK_H
#define TESTS_LIB_TLS_LINK_H

#include "net/tls/tls.h"

#include <netinet/in.h>
#include <stddef.h>

/* Of each two: the end that connects, and then the one that accepts. wire[i] is the other end of the socket of end i. */
struct tls_link {
	struct aw_tls *ends[2];
	int fds[2], wire[2];
	size_t hello; /* bytes of the first flight */
	const char *cause; /* why one of them has failed, or NULL */
};

/* Makes the sessions of two sockets, to or from 127.0.0.1 and a port. wants: of the two, or NULL: both require TLS. */
void tls_link_make_ends(const int fds[2], in_port_t port, const struct aw_tls_want wants[2],
			struct aw_tls *ends[2]);
struct tls_link tls_link_open(in_port_t port, const struct aw_tls_want wants[2]);
/* Until both ends are done, or one has failed: cause is set then. */
void tls_link_shake_hands(struct tls_link *link);
/* The two, with success. */
struct tls_link tls_link_connect(in_port_t port);
/* In order: OpenSSL resumes no session that was cut off. */
void tls_link_end(struct tls_link *link);

/* Passes on what an end has sent: all of it, or so much at most. Returns the number of bytes. */
size_t tls_link_pass(struct tls_link *link, int from);
size_t tls_link_pass_part(struct tls_link *link, int from, size_t max);

/* The cipher suites of all sessions from now on, by OpenSSL's names. */
void tls_link_set_suites(const char *names);

#endif
