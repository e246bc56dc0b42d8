// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many calls of the kernel's a record needs for long FPDUs, and what it does where the kernel, or the peer, does otherwise.
#include "record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>

#define LONG AW_FPDU_PAYLOAD_MAX
#define FULL ((size_t)AW_RECORD_FPDUS * LONG) /* what one call carries */
#define LARGE (2 * FULL)

/* One direction of a connection, in memory. */
static struct {
	uint8_t bytes[6 * LARGE];
	size_t sent, taken;
	size_t takes; /* what it takes of the next sendmsg; 0: all */
	int sends, receives; /* calls */
	int flags; /* of the last sendmsg */
	bool memory_unknown; /* the kernel has no SO_MEMINFO */
	bool full; /* not writable */
	int fails; /* the errno of each sendmsg but the first; 0: none fails */
} net;

static struct aw_record sender, receiver;
static uint8_t data[LARGE], came[LARGE];

static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t room = net.takes ? net.takes : sizeof(net.bytes) - net.sent, before = net.sent;

	(void)fd;
	assert_true(room > 0);
	if (net.fails && net.sends > 0) {
		errno = net.fails;
		return -1;
	}
	net.flags = flags;
	net.takes = 0;
	net.sends++;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t len = msg->msg_iov[i].iov_len < room ? msg->msg_iov[i].iov_len : room;

		memcpy(net.bytes + net.sent, msg->msg_iov[i].iov_base, len);
		net.sent += len;
		room -= len;
	}
	return (ssize_t)(net.sent - before);
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t before = net.taken, n;

	(void)fd;
	net.receives++;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t left = net.sent - net.taken;
		size_t len = msg->msg_iov[i].iov_len < left ? msg->msg_iov[i].iov_len : left;

		memcpy(msg->msg_iov[i].iov_base, net.bytes + net.taken, len);
		net.taken += len;
	}
	n = net.taken - before;
	if (flags & MSG_PEEK)
		net.taken = before;
	errno = EAGAIN;
	return n > 0 ? (ssize_t)n : -1;
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t *memory = value;

	(void)fd;
	(void)level;
	(void)len;
	if (net.memory_unknown && name == SO_SNDBUF) {
		*memory = 6 * (uint32_t)aw_fpdu_len(LONG);
		return 0;
	}
	assert_int_equal(name, SO_MEMINFO);
	errno = ENOPROTOOPT;
	memory[SK_MEMINFO_SNDBUF] = sizeof(net.bytes) * 2;
	return net.memory_unknown ? -1 : 0;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	assert_int_equal(count, 1);
	assert_int_equal(timeout_ms, 0);
	fds->revents = net.full ? 0 : POLLOUT;
	return !net.full;
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd;
	(void)level;
	(void)value;
	(void)len;
	assert_int_equal(name, SO_RCVLOWAT);
	return 0;
}

static int fake_ioctl(int fd, unsigned long request, int *answer)
{
	(void)fd;
	(void)request;
	*answer = 0;
	return 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.sendmsg = fake_sendmsg,
	.getsockopt = fake_getsockopt,
	.setsockopt = fake_setsockopt,
	.ioctl = fake_ioctl,
	.poll = fake_poll,
};

static int begin(void **state)
{
	(void)state;
	memset(&net, 0, sizeof(net));
	memset(came, 0, sizeof(came));
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	aw_record_init(&sender);
	aw_record_init(&receiver);
	return 0;
}

static ssize_t send_with(size_t at, size_t len, int flags)
{
	struct iovec iov = { data + at, len };

	return aw_record_send(&sender, 0, &iov, 1, flags);
}

static ssize_t send_from(size_t at, size_t len)
{
	return send_with(at, len, 0);
}

static ssize_t receive_at(size_t at, size_t len)
{
	struct iovec iov = { came + at, len };

	return aw_record_receive(&receiver, 0, &iov, 1, 0);
}

static void send__gives_several_fpdus_to_one_call(void **state)
{
	(void)state;
	assert_int_equal(send_from(0, FULL), FULL);
	assert_int_equal(net.sends, 1);
	assert_int_equal(net.sent, AW_RECORD_FPDUS * aw_fpdu_len(LONG));
	assert_int_equal(send_from(0, FULL + 1), FULL + 1);
	assert_int_equal(net.sends, 3);
}

static void send__repeats_an_fpdu_that_tcp_has_not_begun(void **state)
{
	(void)state;
	net.takes = aw_fpdu_len(LONG);
	assert_int_equal(send_from(0, 2 * LONG), 2 * LONG);
	assert_int_equal(net.sends, 2);
	assert_int_equal(sender.tx.rest, 0);
	assert_int_equal(receive_at(0, LARGE), 2 * LONG);
	assert_memory_equal(came, data, 2 * LONG);
}

static void send__keeps_the_end_of_an_fpdu_that_tcp_has_begun(void **state)
{
	(void)state;
	net.takes = 5;
	assert_int_equal(send_from(0, 2 * LONG), LONG);
	assert_int_equal(sender.tx.rest, aw_fpdu_len(LONG) - 5);
	assert_int_equal(send_from(LONG, 2 * LONG), 2 * LONG);
	assert_int_equal(net.sends, 3);
	assert_int_equal(receive_at(0, LARGE), 3 * LONG);
	assert_memory_equal(came, data, 3 * LONG);
}

/* A reset behind a batch is the next call's error, once; what is the call's own, as ENOMEM, is nobody's. */
static void send__returns_a_failure_behind_bytes_later(void **state)
{
	static const int fails[] = { ECONNRESET, ENOMEM };

	for (size_t i = 0; i < 2; i++) {
		begin(state);
		net.fails = fails[i];
		assert_int_equal(send_from(0, LARGE), FULL);
		net.fails = 0;
		if (fails[i] == ECONNRESET)
			assert_int_equal(send_from(FULL, 1), -ECONNRESET);
		assert_int_equal(send_from(FULL, 1), 1);
	}
}

/* A third of the send buffer is free where the fd is writable: here half of that is an FPDU. */
static void send__to_a_kernel_without_SO_MEMINFO(void **state)
{
	(void)state;
	net.memory_unknown = true;
	assert_int_equal(send_from(0, 2 * LONG), 2 * LONG);
	assert_int_equal(net.sends, 2);
	net.full = true;
	assert_int_equal(send_from(2 * LONG, 1), -EAGAIN);
	assert_int_equal(net.sends, 2);
	assert_int_equal(receive_at(0, LARGE), 2 * LONG);
	assert_memory_equal(came, data, 2 * LONG);
}

static void receive__takes_several_fpdus_by_one_call(void **state)
{
	(void)state;
	assert_int_equal(send_from(0, LARGE), LARGE);
	assert_int_equal(receive_at(0, FULL), FULL);
	net.receives = 0;
	assert_int_equal(receive_at(FULL, FULL), FULL);
	assert_int_equal(net.receives, 1);
	assert_memory_equal(came, data, LARGE);
}

/* Long FPDUs, and behind them many of this payload: what a read that counts on long ones gets lies where it does not belong. */
static void receive_shorter(size_t payload)
{
	size_t sent = 2 * LONG, got = 2 * LONG;

	begin(NULL);
	assert_int_equal(send_from(0, 2 * LONG), 2 * LONG);
	assert_int_equal(receive_at(0, 2 * LONG), 2 * LONG);
	for (; sent + payload <= LARGE; sent += payload)
		assert_int_equal(send_from(sent, payload), payload);
	while (got < sent) {
		size_t room = FULL < LARGE - got ? FULL : LARGE - got;
		ssize_t n = receive_at(got, room);

		assert_in_range(n, 1, room);
		got += (size_t)n;
	}
	assert_memory_equal(came, data, sent);
}

static void receive__of_shorter_fpdus_than_were_due(void **state)
{
	const size_t payloads[] = { 7, 1000, 4096, LONG / 2 - 11, LONG - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++)
		receive_shorter(payloads[i]);
}

/* Behind a long one a short one, so that the next long one does not fit: its last byte stays where poll finds it. */
static void receive__leaves_the_last_byte_of_what_does_not_fit(void **state)
{
	(void)state;
	assert_int_equal(send_from(0, LONG), LONG);
	assert_int_equal(receive_at(0, LONG), LONG);
	assert_int_equal(send_from(LONG, 100), 100);
	assert_int_equal(send_from(LONG + 100, LONG), LONG);
	assert_int_equal(receive_at(LONG, LONG), LONG);
	assert_int_equal(net.sent - net.taken, 1);
	assert_int_equal(receive_at(2 * LONG, LONG), 100);
	assert_int_equal(net.sent, net.taken);
	assert_memory_equal(came, data, 2 * LONG + 100);
}

/* TCP's pointer is at the last byte of what a call has sent: the FPDU's own last byte, once it is sent. */
static void send__of_an_urgent_byte_goes_on_as_urgent(void **state)
{
	(void)state;
	net.takes = 10;
	assert_int_equal(send_with(0, 1, MSG_OOB), 1);
	assert_true(net.flags & MSG_OOB);
	net.takes = 10;
	assert_int_equal(aw_record_flush(&sender, 0), 0);
	assert_true(net.flags & MSG_OOB);
	assert_int_equal(net.sends, 3);
	assert_int_equal(net.sent, aw_fpdu_len(1));
	assert_int_equal(send_from(1, 1), 1);
	assert_false(net.flags & MSG_OOB);
	assert_int_equal(receive_at(0, 9), 2);
	assert_memory_equal(came, data, 2);
}

static void send__has_the_last_byte_urgent(void **state)
{
	(void)state;
	net.takes = aw_fpdu_len(4) - 1; /* of the FPDU in front */
	assert_int_equal(send_with(0, 5, MSG_OOB), 4);
	assert_false(net.flags & MSG_OOB);
	assert_int_equal(send_with(4, 1, MSG_OOB), 1);
	assert_true(net.flags & MSG_OOB);
	assert_int_equal(receive_at(0, 9), 5);
	assert_memory_equal(came, data, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(send__gives_several_fpdus_to_one_call, begin),
		cmocka_unit_test_setup(send__repeats_an_fpdu_that_tcp_has_not_begun, begin),
		cmocka_unit_test_setup(send__keeps_the_end_of_an_fpdu_that_tcp_has_begun, begin),
		cmocka_unit_test_setup(send__returns_a_failure_behind_bytes_later, begin),
		cmocka_unit_test_setup(send__to_a_kernel_without_SO_MEMINFO, begin),
		cmocka_unit_test_setup(receive__takes_several_fpdus_by_one_call, begin),
		cmocka_unit_test_setup(receive__of_shorter_fpdus_than_were_due, begin),
		cmocka_unit_test_setup(receive__leaves_the_last_byte_of_what_does_not_fit, begin),
		cmocka_unit_test_setup(send__of_an_urgent_byte_goes_on_as_urgent, begin),
		cmocka_unit_test_setup(send__has_the_last_byte_urgent, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
