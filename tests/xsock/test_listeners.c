// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who asks the proxy process whether a connection may become iWARP is told yes for the program's own connections
// alone, and never after its server was told that nobody has asked.
#include "xsock/proxy/listeners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/emulated.h"
#include "xsock/base/probe_wire.h"
#include "xsock/proxy/control.h"
#include "xsock/proxy/loop.h"

#define ANSWER_MS 5000
#define CROWD 100 /* datagrams that a socket holds */
#define A_TURN_MAX 25

struct scene {
	int listener, client;
	struct sockaddr_storage local, remote;
};

/* A TCP socket that shares its port. */
static int shared_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	return fd;
}

static void listen_at(int fd, struct sockaddr_storage *local)
{
	socklen_t len = sizeof(struct sockaddr_in);

	assert_int_equal(bind(fd, (struct sockaddr *)local, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)local, &len), 0);
}

/* A program's listener at fd and a client of it. share: what the program has told of fd. */
static void open_scene_at(struct scene *s, int fd, bool share)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(any);
	struct stat file;

	memset(s, 0, sizeof(*s));
	memcpy(&s->local, &any, sizeof(any));
	s->listener = fd;
	listen_at(s->listener, &s->local);
	s->client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(s->client, (struct sockaddr *)&s->local, len), 0);
	assert_int_equal(getsockname(s->client, (struct sockaddr *)&s->remote, &len), 0);
	assert_int_equal(fstat(s->listener, &file), 0);
	aw_listeners_add(file.st_ino, &s->local, false,
			 &(struct aw_listener_can){ .share = share });
}

static void open_scene(struct scene *s)
{
	open_scene_at(s, shared_socket(), true);
}

static void close_scene(struct scene *s)
{
	if (s->listener >= 0)
		close(s->listener);
	close(s->client);
}

static uint8_t client_has; /* AW_PROBE_RECORDS, or 0 */

static void send_probe(int fd, const struct sockaddr_storage *remote, uint16_t port)
{
	uint8_t octets[AW_PROBE_LEN] = AW_PROBE_ASKS;
	uint16_t unused;

	octets[AW_PROBE_VERSION_AT] = AW_PROBE_VERSION;
	octets[AW_PROBE_YES_AT] = client_has;
	assert_true(
		aw_probe_addr((const struct sockaddr *)remote, octets + AW_PROBE_ADDR_AT, &unused));
	memcpy(octets + AW_PROBE_PORT_AT, &port, sizeof(port));
	assert_int_equal(send(fd, octets, sizeof(octets), 0), sizeof(octets));
}

static int open_probe(const struct scene *s)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = ANSWER_MS / 1000 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&s->local, sizeof(from)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static uint8_t ask_for_answer(const struct scene *s)
{
	uint8_t octets[AW_PROBE_LEN];
	int fd = open_probe(s);

	send_probe(fd, &s->remote, ((const struct sockaddr_in *)&s->remote)->sin_port);
	aw_loop_turn(ANSWER_MS);
	assert_int_equal(recv(fd, octets, sizeof(octets), 0), sizeof(octets));
	assert_memory_equal(octets, AW_PROBE_ANSWERS, 8);
	close(fd);
	return octets[AW_PROBE_YES_AT];
}

/* What the client is answered. */
static bool ask(const struct scene *s)
{
	return ask_for_answer(s) == AW_PROBE_YES;
}

static struct scene *told; /* whose program's word is still on its way */

void aw_control_catch_up(void)
{
	if (told)
		aw_listeners_accepted(&told->local, &told->remote);
	told = NULL;
}

static void stop_listening(struct scene *s)
{
	close(s->listener);
	s->listener = -1;
}

static void listeners__who_asks_first_is_told_yes(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_true(ask(&s));
	assert_true(aw_listeners_decide(&s.local, &s.remote));
	close_scene(&s);
}

static void listeners__who_asks_late_is_told_no(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_false(aw_listeners_decide(&s.local, &s.remote));
	assert_false(ask(&s));
	aw_listeners_forget(&s.local, &s.remote);
	assert_true(ask(&s));
	close_scene(&s);
}

/* The connection may be theirs. */
static void listeners__with_strangers_at_the_port_it_is_no(void **state)
{
	struct scene s;
	int stranger = shared_socket();

	(void)state;
	open_scene(&s);
	listen_at(stranger, &s.local);
	assert_false(ask(&s));
	close(stranger);
	aw_listeners_forget(&s.local, &s.remote);
	assert_true(ask(&s));
	close_scene(&s);
}

static int listen_beside(const struct sockaddr_storage *local, uint32_t address)
{
	struct sockaddr_storage beside = *local;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	((struct sockaddr_in *)&beside)->sin_addr.s_addr = htonl(address);
	/* Ended connections keep the port. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	listen_at(fd, &beside);
	return fd;
}

/* Strangers at other addresses of the port get none of its connections. */
static void listeners__alone_at_the_address_it_is_yes(void **state)
{
	struct scene s;
	int stranger;

	(void)state;
	if (is_emulated()) /* qemu-user has no sock_diag(7), and the answer is no then */
		skip();
	open_scene_at(&s, socket(AF_INET, SOCK_STREAM, 0), false);
	stranger = listen_beside(&s.local, INADDR_LOOPBACK + 1);
	assert_true(ask(&s));
	close(stranger);
	close_scene(&s);
}

/* A plain program has taken its place, before anybody has noticed. */
static void listeners__once_another_listens_at_the_address_it_is_no(void **state)
{
	struct scene s;
	int stranger;

	(void)state;
	open_scene_at(&s, socket(AF_INET, SOCK_STREAM, 0), false);
	assert_true(ask(&s));
	aw_listeners_forget(&s.local, &s.remote);
	stop_listening(&s);
	close(s.client);
	stranger = listen_beside(&s.local, INADDR_LOOPBACK);
	s.client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(s.client, (struct sockaddr *)&s.local, sizeof(struct sockaddr_in)),
			 0);
	assert_false(ask(&s));
	close(stranger);
	close_scene(&s);
}

static void listeners__once_the_listener_is_gone_it_is_no(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	stop_listening(&s);
	assert_false(ask(&s));
	close_scene(&s);
}

static void listeners__but_for_whom_the_program_has_accepted(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	aw_listeners_accepted(&s.local, &s.remote);
	stop_listening(&s);
	assert_true(ask(&s));
	assert_true(aw_listeners_decide(&s.local, &s.remote));
	close_scene(&s);
	open_scene(&s);
	aw_listeners_accepted(&s.local, &s.remote);
	assert_false(aw_listeners_decide(&s.local, &s.remote));
	assert_false(ask(&s));
	close_scene(&s);
}

/* It has told before it closed its listener; the question was heard first. */
static void listeners__nor_for_whom_it_is_about_to_tell_of(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	stop_listening(&s);
	told = &s;
	assert_true(ask(&s));
	close_scene(&s);
}

static int answers(int fd)
{
	uint8_t octets[AW_PROBE_LEN];
	int count = 0;

	while (recv(fd, octets, sizeof(octets), MSG_DONTWAIT) == sizeof(octets))
		count++;
	return count;
}

/* Connections have their turn while somebody asks without end. */
static void listeners__hear_so_many_a_turn(void **state)
{
	int fd, turns = 0, got = 0;
	struct scene s;

	(void)state;
	open_scene(&s);
	fd = open_probe(&s);
	for (int i = 1; i <= CROWD; i++)
		send_probe(fd, &s.remote, htons((uint16_t)i));
	while (got < CROWD) {
		assert_true(turns++ <= CROWD);
		aw_loop_turn(ANSWER_MS);
		got += answers(fd);
	}
	assert_in_range(turns, CROWD / A_TURN_MAX, CROWD);
	close(fd);
	close_scene(&s);
}

static uint8_t ask_as(const struct scene *s, uint8_t has)
{
	client_has = has;
	return ask_for_answer(s);
}

/* Where both have them, and to no client that is told no. */
static void listeners__tell_of_records(void **state)
{
	const struct aw_listener_can has_them = { .records = true };
	struct stat file;
	struct scene s;

	(void)state;
	open_scene(&s);
	assert_int_equal(ask_as(&s, AW_PROBE_RECORDS), AW_PROBE_YES);
	assert_int_equal(fstat(s.listener, &file), 0);
	aw_listeners_add(file.st_ino, &s.local, false, &has_them);
	assert_int_equal(ask_as(&s, AW_PROBE_RECORDS), AW_PROBE_YES | AW_PROBE_RECORDS);
	assert_int_equal(ask_as(&s, 0), AW_PROBE_YES);
	assert_int_equal(ask_as(&s, 2), AW_PROBE_YES); /* a client with records of another kind */
	close_scene(&s);
	open_scene(&s);
	assert_int_equal(fstat(s.listener, &file), 0);
	aw_listeners_add(file.st_ino, &s.local, false, &has_them);
	assert_false(aw_listeners_decide(&s.local, &s.remote));
	assert_int_equal(ask_as(&s, AW_PROBE_RECORDS), 0);
	client_has = 0;
	close_scene(&s);
}

static int set_up(void **state)
{
	(void)state;
	return aw_loop_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listeners__who_asks_first_is_told_yes),
		cmocka_unit_test(listeners__who_asks_late_is_told_no),
		cmocka_unit_test(listeners__with_strangers_at_the_port_it_is_no),
		cmocka_unit_test(listeners__alone_at_the_address_it_is_yes),
		cmocka_unit_test(listeners__once_another_listens_at_the_address_it_is_no),
		cmocka_unit_test(listeners__once_the_listener_is_gone_it_is_no),
		cmocka_unit_test(listeners__but_for_whom_the_program_has_accepted),
		cmocka_unit_test(listeners__nor_for_whom_it_is_about_to_tell_of),
		cmocka_unit_test(listeners__tell_of_records),
		cmocka_unit_test(listeners__hear_so_many_a_turn),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
