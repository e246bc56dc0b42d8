// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plain TLS over TCP, by the library that anywarp takes for its TLS, and with the same certificates: TLS 1.3, both ends prove
// who they are. One connection at a time, and messages one way: what anywarp's rows under TLS stand beside.
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include "worker/session.h"

#include <openssl/ssl.h>

/* A connection. In the event-driven modes its socket does not block, and set has it. */
struct tls {
	SSL *ssl;
	int fd;
	int set; /* epoll; -1: none */
};

void tls_listen(struct session *session);

/* TCP, then the whole handshake: both ends have each other's certificate. */
struct tls tls_connect_one(const struct session *session);
struct tls tls_accept_one(const struct session *session);

/* The connection's end: close_notify, and the peer's awaited by the end that says so. */
void tls_end(struct tls *tls, bool waits);

/* Sends all of it, as one or several records. */
void tls_send(const struct tls *tls, const uint8_t *buf, size_t octets);

/* Waits, and receives what there is; never 0. */
size_t tls_receive_some(const struct tls *tls, uint8_t *buf, size_t octets);
void tls_receive(const struct tls *tls, uint8_t *buf, size_t octets);

#endif
