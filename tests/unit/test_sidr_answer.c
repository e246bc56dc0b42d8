// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The server's side of SIDR: how often it replies.
#include "net/progress/engine.h"
#include "net/ud/sidr.h"
#include "wire/sidr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	REQUESTS = AW_SIDR_TRIES_MAX + 20,
	LAST = 77, /* the id of another request */
};

static bool reply(void *arg, struct aw_sidr_request *request)
{
	const struct aw_sidr_answer answer = { .qpn = 5 };

	(void)arg;
	assert_int_equal(aw_sidr_reply(request, &answer), 0);
	aw_sidr_request_free(request);
	return true;
}

static void ask(int client, uint64_t id)
{
	uint8_t octets[SIDR_MAX];
	size_t len = sidr_build(&(struct sidr_msg){ .kind = SIDR_REQUEST, .id = id }, octets);

	assert_int_equal(send(client, octets, len, 0), len);
}

/* Returns the id of the reply that comes. */
static uint64_t next_reply(int client)
{
	uint8_t octets[SIDR_MAX];
	ssize_t n = recv(client, octets, sizeof(octets), 0);
	struct sidr_msg msg;

	assert_true(n > 0 && sidr_parse(octets, (size_t)n, &msg));
	assert_int_equal(msg.kind, SIDR_REPLY);
	return msg.id;
}

/* The reply to another request, which comes last, shows that there is none before it. */
static void answer__is_sent_as_often_as_a_client_asks(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int server = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0),
	    client = socket(AF_INET, SOCK_DGRAM, 0);
	struct aw_sidr_service *service;
	socklen_t len = sizeof(addr);

	(void)state;
	assert_int_equal(aw_engine_get(), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(aw_sidr_listen(server, reply, NULL, &service), 0);
	for (int i = 0; i < AW_SIDR_TRIES_MAX; i++) {
		ask(client, 1);
		assert_int_equal(next_reply(client), 1);
	}
	for (int i = AW_SIDR_TRIES_MAX; i < REQUESTS; i++)
		ask(client, 1);
	ask(client, LAST);
	assert_int_equal(next_reply(client), LAST);
	aw_sidr_service_destroy(service);
	aw_engine_put();
	close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer__is_sent_as_often_as_a_client_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
