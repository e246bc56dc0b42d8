// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Urgent bytes on the kernel's own TCP, where tests/prop/prop_record_urgent.c does not lead: peers that put the urgent pointer
// elsewhere, long streams, and reads at the mark.
#include "record/record.h"

#include "../lib/record_calls.h"
#include "../lib/tcp.h"
#include "record/lowat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LARGE 200000u
#define URGENT_LEN 28u

static int fds[2];
static struct aw_record sender, receiver;
static uint8_t data[LARGE], came[LARGE];

const struct aw_record_calls aw_record_calls = { RECORD_CALLS };

static int begin(void **state)
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr), on = 1, size = 4 * (int)LARGE;

	(void)state;
	assert_return_code(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), errno);
	fds[0] = tcp_connect(&addr);
	fds[1] = tcp_accept(listener);
	close(listener);
	assert_return_code(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), errno);
	assert_return_code(setsockopt(fds[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)), errno);
	aw_record_init(&sender);
	aw_record_init(&receiver);
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(fds[0]);
	close(fds[1]);
	return 0;
}

static void send_on(size_t len, int flags)
{
	struct iovec iov = { data, len };

	assert_int_equal(aw_record_send(&sender, fds[0], &iov, 1, flags), len);
}

static ssize_t receive_on(size_t len)
{
	struct iovec iov = { came, len };

	return aw_record_receive(&receiver, fds[1], &iov, 1, 0);
}

static ssize_t peek_on(size_t len)
{
	struct iovec iov = { came, len };

	return aw_record_peek(&receiver, fds[1], &iov, 1, NULL);
}

static ssize_t urgent_on(int flags)
{
	return aw_record_receive_urgent(&receiver, fds[1], came, flags);
}

static short ready(short events, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fds[1], .events = events };

	return poll(&pollfd, 1, timeout_ms) > 0 ? pollfd.revents : 0;
}

static void await(short event)
{
	assert_true(ready(event, TCP_WAIT_S * 1000) & event);
}

/* Until the socket has so many bytes. */
static void await_bytes(int bytes)
{
	struct pollfd pollfd = { .fd = fds[1], .events = POLLIN };
	int one = 1;

	setsockopt(fds[1], SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
	assert_int_equal(poll(&pollfd, 1, TCP_WAIT_S * 1000), 1);
	setsockopt(fds[1], SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}

static void send_raw(const uint8_t *bytes, size_t len, int flags)
{
	assert_int_equal(send(fds[0], bytes, len, flags), len);
}

/* An FPDU that may be urgent, with a CRC that is right. */
static size_t build(uint8_t *fpdu, size_t payload, bool urgent)
{
	if (urgent)
		aw_fpdu_put_urgent_head(fpdu, 1);
	else
		aw_fpdu_put_head(fpdu, payload, 1);
	memcpy(fpdu + AW_FPDU_HEAD, data, payload);
	return aw_fpdu_put_trailer(fpdu, payload);
}

/* TCP's would lose the byte there; but the record's fd was readable for it alone. */
static void receive__at_the_mark_leaves_the_byte(void **state)
{
	(void)state;
	send_on(3, 0);
	send_on(1, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(receive_on(3), 3);
	assert_int_equal(receive_on(3), -EAGAIN);
	assert_false(ready(POLLIN, 0));
	assert_int_equal(urgent_on(0), 1);
	assert_int_equal(came[0], data[0]);
	assert_false(ready(POLLIN | POLLPRI, 0));
	send_on(2, 0);
	await(POLLIN);
	assert_int_equal(receive_on(9), 2);
}

static void receive__the_end_at_the_mark(void **state)
{
	(void)state;
	send_on(1, MSG_OOB);
	shutdown(fds[0], SHUT_WR);
	await(POLLPRI);
	await(POLLIN);
	assert_int_equal(urgent_on(MSG_PEEK), 1);
	assert_int_equal(receive_on(3), 0);
}

static void urgent__behind_a_long_stream(void **state)
{
	(void)state;
	send_on(LARGE, 0);
	send_on(7, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(urgent_on(MSG_PEEK), 1);
	assert_int_equal(came[0], data[6]);
	assert_int_equal(urgent_on(0), 1);
	assert_int_equal(urgent_on(0), -EINVAL);
	for (size_t got = 0; got < LARGE;) {
		ssize_t n = receive_on(LARGE);

		assert_true(n > 0 && memcmp(came, data + got, (size_t)n) == 0);
		got += (size_t)n;
	}
	assert_int_equal(receive_on(LARGE), 6);
}

/* A program that has urgent bytes in line counts them, and what is behind. */
static void pending__goes_on_behind_an_urgent_byte(void **state)
{
	const size_t len = 100000;

	(void)state;
	receiver.rx.in_line = true;
	send_on(len, 0);
	send_on(1, MSG_OOB);
	send_on(5, 0);
	await_bytes((int)(aw_lowat_bytes(&(struct aw_record_key){ 0 }, len) + URGENT_LEN +
			  aw_fpdu_len(5)));
	assert_int_equal(aw_record_pending(&receiver, fds[1]), len + 6);
}

/* What follows the first at bytes of an FPDU that carries data's first 300 makes these come. */
static void assert_rest_makes_whole(const uint8_t *fpdu, size_t len, size_t at)
{
	send_raw(fpdu + at, len - at, 0);
	while (receive_on(300) == -EAGAIN)
		await(POLLIN);
	assert_memory_equal(came, data, 300);
}

/* A pointer at no urgent FPDU's end is nothing that poll may tell of for ever. */
static void urgent__in_the_middle_of_an_fpdu(void **state)
{
	uint8_t fpdu[400];
	size_t len = build(fpdu, 300, false);

	(void)state;
	send_raw(fpdu, 100, MSG_OOB);
	await(POLLPRI);
	await_bytes(100);
	assert_int_equal(urgent_on(0), -EAGAIN);
	assert_false(ready(POLLPRI, 0));
	assert_rest_makes_whole(fpdu, len, 100);
}

/* The program has read up to the pointer, whose byte is the socket's next. */
static void urgent__in_front_of_half_an_fpdu(void **state)
{
	uint8_t fpdu[400];
	size_t len = build(fpdu, 300, false);

	(void)state;
	send_raw(fpdu, 1, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(urgent_on(0), -EINVAL);
	assert_false(ready(POLLPRI, 0));
	assert_rest_makes_whole(fpdu, len, 1);
}

static void urgent__with_a_wrong_crc(void **state)
{
	uint8_t fpdu[URGENT_LEN];

	(void)state;
	build(fpdu, 1, true);
	fpdu[URGENT_LEN - 1] ^= 1;
	send_raw(fpdu, URGENT_LEN, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(urgent_on(0), -EPROTO);
	assert_int_equal(receiver.rx.fault, AW_E_MPA_CRC);
	assert_int_equal(receive_on(1), 0);
}

/* The program stands at it when the next one comes, and its fault is told once. */
static void urgent__overtaken_with_a_wrong_crc(void **state)
{
	uint8_t fpdu[URGENT_LEN];

	(void)state;
	build(fpdu, 1, true);
	fpdu[URGENT_LEN - 1] ^= 1;
	send_raw(fpdu, URGENT_LEN, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(receive_on(1), -EAGAIN);
	send_raw(fpdu, URGENT_LEN, MSG_OOB);
	await_bytes(1 + (int)URGENT_LEN);
	assert_false(aw_record_is_at_mark(&receiver, fds[1]));
	assert_true(receiver.rx.ended);
	assert_int_equal(receive_on(1), -EPROTO);
	assert_int_equal(receive_on(1), 0);
}

static void urgent__without_a_pointer_is_in_line(void **state)
{
	uint8_t fpdu[URGENT_LEN];

	(void)state;
	build(fpdu, 1, true);
	send_raw(fpdu, URGENT_LEN, 0);
	await(POLLIN);
	assert_int_equal(urgent_on(0), -EINVAL);
	assert_int_equal(receive_on(9), 1);
}

/* To look for the mark takes nothing but an urgent FPDU's whole front out of the socket. */
static void mark__is_looked_for_without_taking(void **state)
{
	uint8_t fpdu[URGENT_LEN];

	(void)state;
	send_on(40, 0);
	await(POLLIN);
	assert_false(aw_record_is_at_mark(&receiver, fds[1]));
	assert_int_equal(receiver.rx.have, 0);
	send_on(1, MSG_OOB);
	send_on(1, 0);
	await(POLLPRI);
	assert_int_equal(receive_on(LARGE), 40);
	assert_int_equal(receive_on(LARGE), 1);
	build(fpdu, 1, true);
	send_raw(fpdu, URGENT_LEN - 2, 0);
	await(POLLIN);
	assert_false(aw_record_is_at_mark(&receiver, fds[1]));
	assert_int_equal(receiver.rx.have, 0);
}

/* Many of them, of which each overtakes the one before: none is lost but those that the program stands at. */
static void urgent__many(void **state)
{
	(void)state;
	send_on(1, 0);
	for (int i = 0; i < 500; i++)
		send_on(2, MSG_OOB);
	await_bytes(1001 * (int)URGENT_LEN);
	assert_int_equal(urgent_on(0), 1);
	assert_int_equal(came[0], data[1]);
	assert_int_equal(receive_on(LARGE), 1000);
	assert_int_equal(receive_on(LARGE), -EAGAIN);
}

/* What makes the FPDU behind the mark whole wakes a poller, and no less. */
static void peek__at_the_mark(void **state)
{
	uint8_t fpdu[400];
	size_t len = build(fpdu, 300, false);

	(void)state;
	send_on(1, MSG_OOB);
	await(POLLPRI);
	assert_int_equal(receive_on(1), -EAGAIN);
	fpdu[15] = 2; /* its number */
	aw_fpdu_put_trailer(fpdu, 300);
	send_raw(fpdu, 100, 0);
	await_bytes(1 + 100);
	assert_int_equal(peek_on(LARGE), -EAGAIN);
	assert_false(ready(POLLIN, 0));
	send_raw(fpdu + 100, len - 100, 0);
	await(POLLIN);
	assert_int_equal(peek_on(LARGE), 300);
	assert_int_equal(urgent_on(0), 1);
	assert_int_equal(receive_on(LARGE), 300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(receive__at_the_mark_leaves_the_byte),
		TEST(receive__the_end_at_the_mark),
		TEST(urgent__behind_a_long_stream),
		TEST(pending__goes_on_behind_an_urgent_byte),
		TEST(urgent__in_the_middle_of_an_fpdu),
		TEST(urgent__in_front_of_half_an_fpdu),
		TEST(urgent__with_a_wrong_crc),
		TEST(urgent__without_a_pointer_is_in_line),
		TEST(mark__is_looked_for_without_taking),
		TEST(urgent__many),
		TEST(peek__at_the_mark),
		TEST(urgent__overtaken_with_a_wrong_crc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
