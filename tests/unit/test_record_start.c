// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How two records begin on the kernel's own TCP: the active end goes on without the Reply, which no poller sees.
#include "record/record.h"
#include "record/startup.h"

#include "../lib/record_calls.h"
#include "../lib/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HELLO "a hello of forty bytes, as sockets have..."
#define HELLO_LEN 40
#define LARGE 100000u

static int fds[2];
static struct aw_record records[2];
static uint8_t data[LARGE], came[LARGE];

static bool is_hello(const uint8_t *bytes, size_t len, bool sealed)
{
	(void)sealed;
	return len == HELLO_LEN && memcmp(bytes, HELLO, len) == 0;
}

const struct aw_record_calls aw_record_calls = { RECORD_CALLS, .is_record = is_hello };

static void connect_fds(void)
{
	tcp_pair(fds);
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
}

static void initiate(void)
{
	connect_fds();
	aw_record_init(&records[0]);
	assert_int_equal(aw_record_initiate(&records[0], fds[0], HELLO, HELLO_LEN), 0);
}

static void respond(void)
{
	uint8_t request[AW_STARTUP_HEAD + HELLO_LEN];
	const uint8_t *hello;
	size_t used, len;

	tcp_recv(fds[1], request, sizeof(request));
	assert_int_equal(aw_startup_get(request, sizeof(request), false, &used, &hello, &len),
			 AW_STARTUP_WHOLE);
	assert_int_equal(used, sizeof(request));
	assert_true(is_hello(hello, len, false));
	aw_record_init(&records[1]);
	aw_record_respond(&records[1], HELLO, HELLO_LEN);
}

static void close_fds(void)
{
	close(fds[0]);
	close(fds[1]);
}

static ssize_t send_on(int end, size_t len)
{
	struct iovec iov = { data, len };

	return aw_record_send(&records[end], fds[end], &iov, 1, 0);
}

static ssize_t receive_on(int end, size_t len)
{
	struct iovec iov = { came, len };

	return aw_record_receive(&records[end], fds[end], &iov, 1, 0);
}

static ssize_t peek_on(int end, size_t len)
{
	struct iovec iov = { came, len };

	return aw_record_peek(&records[end], fds[end], &iov, 1, NULL);
}

static bool is_readable(int end, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fds[end], .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) > 0;
}

static void start__needs_no_answer(void **state)
{
	(void)state;
	initiate();
	assert_int_equal(send_on(0, 10), 10);
	respond();
	assert_true(is_readable(1, TCP_WAIT_S * 1000));
	assert_int_equal(receive_on(1, LARGE), 10);
	assert_false(is_readable(0, 0));
	assert_int_equal(send_on(1, 20), 20);
	assert_true(is_readable(0, TCP_WAIT_S * 1000));
	assert_int_equal(peek_on(0, LARGE), 20);
	assert_int_equal(receive_on(0, LARGE), 20);
	assert_memory_equal(came, data, 20);
	assert_false(is_readable(0, 0));
	close_fds();
}

/* A peer that writes nothing says nothing: neither does its end. */
static void start__an_end_without_a_word(void **state)
{
	(void)state;
	initiate();
	respond();
	assert_int_equal(aw_record_flush(&records[1], fds[1]), 0);
	shutdown(fds[1], SHUT_WR);
	assert_true(is_readable(0, TCP_WAIT_S * 1000));
	assert_int_equal(receive_on(0, LARGE), 0);
	assert_int_equal(send_on(0, 5), 5);
	assert_true(is_readable(1, TCP_WAIT_S * 1000));
	assert_int_equal(receive_on(1, LARGE), 5);
	close_fds();
}

/* A Reply on its own, as from an end that sends it at once, wakes nobody. */
static void start__the_reply_alone_is_quiet(void **state)
{
	uint8_t reply[AW_STARTUP_MAX];
	size_t len = aw_startup_put(reply, true, HELLO, HELLO_LEN);

	(void)state;
	initiate();
	tcp_send(fds[1], reply, len);
	assert_false(is_readable(0, 50));
	assert_int_equal(receive_on(0, LARGE), -EAGAIN);
	aw_record_init(&records[1]);
	assert_int_equal(send_on(1, 1), 1);
	assert_true(is_readable(0, TCP_WAIT_S * 1000));
	assert_int_equal(receive_on(0, LARGE), 1);
	close_fds();
}

static void assert_no_reply(const uint8_t *bytes, size_t len)
{
	initiate();
	tcp_send(fds[1], bytes, len);
	shutdown(fds[1], SHUT_WR);
	assert_true(is_readable(0, TCP_WAIT_S * 1000));
	assert_int_equal(receive_on(0, LARGE), -EPROTO);
	aw_record_end(&records[0], fds[0]);
	assert_int_equal(send_on(0, 1), -EPIPE);
	assert_int_equal(receive_on(0, LARGE), 0);
	close_fds();
}

static void start__what_is_no_reply_of_a_record(void **state)
{
	uint8_t frame[AW_STARTUP_MAX];
	size_t len = aw_startup_put(frame, true, HELLO, HELLO_LEN);

	(void)state;
	frame[AW_STARTUP_HEAD] ^= 1;
	assert_no_reply(frame, len); /* its private data is somebody else's */
	frame[AW_STARTUP_HEAD] ^= 1;
	frame[16] |= 0x20;
	assert_no_reply(frame, len); /* a reject */
	frame[16] ^= 0xa0;
	assert_no_reply(frame, len); /* it wants markers */
	len = aw_startup_put(frame, false, HELLO, HELLO_LEN);
	assert_no_reply(frame, len); /* a Request */
	memset(frame, 0xff, sizeof(frame));
	assert_no_reply(frame, sizeof(frame));
}

/* However small the receive buffer, and however it comes, an FPDU can be looked at and counted. */
static void peek__an_fpdu_larger_than_the_buffer(void **state)
{
	int size = 2048;
	size_t sent = 0;

	(void)state;
	initiate();
	respond();
	setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	sent = (size_t)send_on(0, 30000);
	assert_int_equal(sent, 30000);
	for (;;) {
		ssize_t n = peek_on(1, LARGE);

		if (n != -EAGAIN) {
			assert_int_equal(n, 30000);
			break;
		}
		assert_true(is_readable(1, TCP_WAIT_S * 1000));
	}
	assert_memory_equal(came, data, 30000);
	assert_return_code(ioctl(fds[1], FIONREAD, &size), errno);
	assert_int_equal(aw_record_pending(&records[1], fds[1]), 30000);
	assert_int_equal(receive_on(1, 1000), 1000);
	assert_int_equal(peek_on(1, 5), 5);
	assert_memory_equal(came, data + 1000, 5);
	assert_int_equal(receive_on(1, LARGE), 29000);
	assert_memory_equal(came, data + 1000, 29000);
	close_fds();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start__needs_no_answer),
		cmocka_unit_test(start__an_end_without_a_word),
		cmocka_unit_test(start__the_reply_alone_is_quiet),
		cmocka_unit_test(start__what_is_no_reply_of_a_record),
		cmocka_unit_test(peek__an_fpdu_larger_than_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
