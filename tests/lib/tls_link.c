// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tls_link.h"

#include "net/tls/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_MAX 20

void tls_link_make_ends(const int fds[2], in_port_t port, const struct aw_tls_want wants[2],
			struct aw_tls *ends[2])
{
	static const struct aw_tls_want require = { .mode = AW_TLS_REQUIRE };
	const struct sockaddr_in peer = { .sin_family = AF_INET,
					  .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (int i = 0; i < 2; i++)
		assert_int_equal(aw_tls_create(fds[i], (const struct sockaddr *)&peer, i == 1,
					       wants ? &wants[i] : &require, &ends[i]),
				 0);
}

struct tls_link tls_link_open(in_port_t port, const struct aw_tls_want wants[2])
{
	struct tls_link link = { .hello = 0 };

	for (int i = 0; i < 2; i++) {
		int pair[2];

		assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
				   errno);
		link.fds[i] = pair[0];
		link.wire[i] = pair[1];
	}
	tls_link_make_ends(link.fds, port, wants, link.ends);
	return link;
}

void tls_link_shake_hands(struct tls_link *link)
{
	bool done[2] = { false, false };

	for (int round = 0; round < ROUNDS_MAX && !(done[0] && done[1]); round++) {
		for (int i = 0; i < 2; i++) {
			enum aw_tls_io io = done[i] ? AW_TLS_DONE : aw_tls_handshake(link->ends[i]);
			size_t passed;

			if (io == AW_TLS_FAILED) {
				link->cause = aw_tls_cause(link->ends[i]);
				return;
			}
			done[i] = io == AW_TLS_DONE;
			passed = tls_link_pass(link, i);
			link->hello = link->hello ? link->hello : passed;
		}
	}
	assert_true(done[0] && done[1]);
}

struct tls_link tls_link_connect(in_port_t port)
{
	struct tls_link link = tls_link_open(port, NULL);

	tls_link_shake_hands(&link);
	assert_null(link.cause);
	return link;
}

void tls_link_end(struct tls_link *link)
{
	for (int i = 0; i < 2; i++) {
		(void)aw_tls_finish(link->ends[i]);
		aw_tls_free(link->ends[i]);
		close(link->fds[i]);
		close(link->wire[i]);
	}
}

size_t tls_link_pass(struct tls_link *link, int from)
{
	return tls_link_pass_part(link, from, SIZE_MAX);
}

size_t tls_link_pass_part(struct tls_link *link, int from, size_t max)
{
	static char octets[1 << 20];
	ssize_t n = recv(link->wire[from], octets, MIN(max, sizeof(octets)), MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	assert_int_equal(send(link->wire[!from], octets, (size_t)n, 0), n);
	return (size_t)n;
}

void tls_link_set_suites(const char *names)
{
	SSL_CTX *ctx = aw_tls_context_get();
	int (*set)(SSL_CTX * ctx, const char *names);
	void *found = dlsym(dlopen(AW_OPENSSL_LIBRARY, RTLD_NOW), "SSL_CTX_set_ciphersuites");

	memcpy(&set, &found, sizeof(set));
	assert_int_equal(set(ctx, names), 1);
	aw_openssl.SSL_CTX_free(ctx);
}
