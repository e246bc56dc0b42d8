// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RFC 5044 3 and 4.5, RFC 5041 3: FPDUs follow the size of TCP's segments when the path changes
// under a stream. The path is the loopback of a network namespace of the test's own.
#define _GNU_SOURCE /* unshare */
#include "../lib/tcp.h"
#include "../lib/uqp_pair.h"
#include "net/progress/engine.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	WIDE = 9000, /* MTUs */
	NARROW = 1500,
	HEADERS = 40, /* of IP and TCP, the least there can be */
	WRITE_OCTETS = 100000,
	WRITES_MAX = 64, /* more octets than TCP is asked again after */
};

static bool alone; /* the namespace is ours */

static bool set_loopback(unsigned long what, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool done;

	strcpy(request->ifr_name, "lo");
	done = ioctl(fd, what, request) == 0;
	close(fd);
	return done;
}

static bool set_mtu(int mtu)
{
	struct ifreq request = { .ifr_mtu = mtu };

	return set_loopback(SIOCSIFMTU, &request);
}

static bool go_alone(void)
{
	struct ifreq up = { .ifr_flags = IFF_UP };

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	return set_mtu(WIDE) && set_loopback(SIOCSIFFLAGS, &up);
}

static uint8_t octets[FPDU_MAX];

/* Reads one FPDU at the bare end of the stream; returns its octets. */
static size_t read_fpdu(int peer)
{
	size_t size;

	tcp_recv(peer, octets, FPDU_LEN_FIELD);
	size = fpdu_size(get_be16(octets));
	tcp_recv(peer, octets + FPDU_LEN_FIELD, size - FPDU_LEN_FIELD);
	return size;
}

/* The longest FPDU of one Write. */
static size_t longest(struct end *end, int peer)
{
	size_t max = 0, placed = 0;

	end_post(end, AW_OP_WRITE, end, WRITE_OCTETS);
	while (placed < WRITE_OCTETS) {
		size_t size = read_fpdu(peer);

		placed += get_be16(octets) - (size_t)14; /* a tagged header */
		max = size > max ? size : max;
	}
	assert_int_equal(end_wait_cqe(end).cqe.status, AW_WC_SUCCESS);
	return max;
}

struct path {
	struct end end;
	int pd, listener, peer;
};

static void path_open(struct path *path, struct aw_stream *stream)
{
	struct sockaddr_storage addr;
	int fd;

	*path = (struct path){ .end.events = 0 };
	assert_int_equal(aw_engine_get(), 0);
	path->listener = tcp_listen(1, &addr);
	fd = tcp_socket(AF_INET);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, tcp_addr_len(&addr)), 0);
	path->peer = tcp_accept(path->listener);
	end_make(&path->end, &path->pd, NULL);
	assert_int_equal(aw_uqp_attach(path->end.qp, fd, stream), 0);
}

static void path_close(struct path *path)
{
	end_destroy(&path->end);
	close(path->peer);
	close(path->listener);
	aw_engine_put();
}

static void path__narrows_and_widens(void **state)
{
	struct aw_stream stream = { .initiator = true, .crc = true };
	static const int mtus[] = { NARROW, WIDE };
	struct path path;

	(void)state;
	if (!alone)
		skip();
	path_open(&path, &stream);
	assert_in_range(longest(&path.end, path.peer), NARROW, WIDE - HEADERS);
	for (int i = 0; i < 2; i++) {
		int writes = 0;
		size_t max;

		assert_true(set_mtu(mtus[i]));
		do {
			max = longest(&path.end, path.peer);
			assert_true(++writes < WRITES_MAX);
		} while (i == 0 ? max > NARROW - HEADERS : max <= NARROW);
		assert_true(max <= (size_t)mtus[i] - HEADERS);
	}
	path_close(&path);
}

/* docs/extensions.md: where both ends agreed on large FPDUs the path does not bound them. */
static void path__does_not_bound_large_fpdus(void **state)
{
	struct aw_stream stream = { .initiator = true, .crc = true, .large_fpdus = true };
	struct path path;

	(void)state;
	if (!alone)
		skip();
	path_open(&path, &stream);
	for (int writes = 0; writes < WRITES_MAX; writes++) {
		assert_true(set_mtu(writes % 2 ? WIDE : NARROW));
		assert_in_range(longest(&path.end, path.peer), fpdu_size(FPDU_MULPDU_MAX) - WIDE,
				fpdu_size(FPDU_MULPDU_MAX));
	}
	path_close(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__narrows_and_widens),
		cmocka_unit_test(path__does_not_bound_large_fpdus),
	};

	alone = go_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
