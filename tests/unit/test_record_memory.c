// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The program's memory is the program's: another thread may store to it while a record sends or receives, two buffers of a read may
// be one, and nothing is written but the bytes that a read returns.
#include "record/bounce.h"
#include "record/record.h"

#include "wire/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define LONG AW_FPDU_PAYLOAD_MAX
#define LARGE ((size_t)2 * AW_RECORD_FPDUS * LONG)
#define UNTOUCHED 0xee

/* One direction of a connection, in memory. */
static struct {
	uint8_t bytes[4 * LARGE];
	size_t sent, taken;
	size_t takes; /* what it takes of the next sendmsg; 0: all */
} net;

static struct aw_record sender, receiver;
static uint8_t data[LARGE], came[LARGE];
/* What another thread stores to before and after each CRC, or bytes have been sent; NULL: none does. */
static uint8_t *stored;
static size_t stored_len;

/* All of it, with a value that it does not have yet. */
static void store(void)
{
	for (size_t i = 0; stored && i < stored_len; i++)
		stored[i]++;
}

static int processor; /* of the next calls */
static bool no_memory;
static int maps, unmaps;

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t len);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t len);
int __wrap_sched_getcpu(void);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	maps++;
	errno = ENOMEM;
	return no_memory ? MAP_FAILED : __real_mmap(at, len, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t len)
{
	unmaps++;
	return __real_munmap(at, len);
}

int __wrap_sched_getcpu(void)
{
	return processor;
}

static void assert_within(const struct iovec *iov, const uint8_t *bytes, size_t len)
{
	const uint8_t *base = iov->iov_base;

	if (base >= bytes && base < bytes + len)
		assert_true(iov->iov_len <= (size_t)(bytes + len - base));
}

/* The memory is not the program's; where it is a record's, all of it is. */
static void assert_private(const struct iovec *iov)
{
	const uint8_t *base = iov->iov_base;

	assert_false(base >= data && base < data + sizeof(data));
	assert_false(base >= came && base < came + sizeof(came));
	assert_within(iov, receiver.rx.bytes, sizeof(receiver.rx.bytes));
	assert_within(iov, sender.tx.bytes, sizeof(sender.tx.bytes));
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t room = net.takes ? net.takes : sizeof(net.bytes) - net.sent, before = net.sent;

	(void)fd;
	(void)flags;
	assert_true(room > 0);
	net.takes = 0;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t len = msg->msg_iov[i].iov_len < room ? msg->msg_iov[i].iov_len : room;

		assert_private(&msg->msg_iov[i]);
		memcpy(net.bytes + net.sent, msg->msg_iov[i].iov_base, len);
		net.sent += len;
		room -= len;
	}
	store();
	return (ssize_t)(net.sent - before);
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t at = net.taken;

	(void)fd;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t left = net.sent - at;
		size_t len = msg->msg_iov[i].iov_len < left ? msg->msg_iov[i].iov_len : left;

		assert_private(&msg->msg_iov[i]);
		memcpy(msg->msg_iov[i].iov_base, net.bytes + at, len);
		at += len;
	}
	at -= net.taken;
	net.taken += flags & MSG_PEEK ? 0 : at;
	errno = EAGAIN;
	return at > 0 ? (ssize_t)at : -1;
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t *memory = value;

	(void)fd;
	(void)level;
	(void)len;
	assert_int_equal(name, SO_MEMINFO);
	memory[SK_MEMINFO_SNDBUF] = 2 * sizeof(net.bytes);
	return 0;
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
	*answer = request == FIONREAD ? (int)(net.sent - net.taken) : 0;
	return 0;
}

uint32_t __wrap_aw_crc32c(uint32_t crc, const void *bytes, size_t len);

uint32_t __wrap_aw_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	store();
	crc = crc32c_update(crc, bytes, len);
	store();
	return crc;
}

uint32_t __wrap_aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

uint32_t __wrap_aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	store();
	return crc32c_update(crc, dst, len);
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.sendmsg = fake_sendmsg,
	.getsockopt = fake_getsockopt,
	.setsockopt = fake_setsockopt,
	.ioctl = fake_ioctl,
};

static int begin(void **state)
{
	(void)state;
	net.sent = net.taken = net.takes = 0;
	stored = NULL;
	memset(came, UNTOUCHED, sizeof(came));
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	aw_record_init(&sender);
	aw_record_init(&receiver);
	return 0;
}

static void another_thread_stores_to(uint8_t *bytes, size_t len)
{
	stored = bytes;
	stored_len = len;
}

static void send_on(size_t len)
{
	struct iovec iov = { data, len };

	assert_int_equal(aw_record_send(&sender, 0, &iov, 1, 0), len);
}

static ssize_t receive_at(size_t at, size_t room)
{
	struct iovec iov = { came + at, room };

	return aw_record_receive(&receiver, 0, &iov, 1, 0);
}

static const size_t lengths[] = { 1, 100, 4096, LONG - 1, LONG, LONG + 1, 5 * LONG + 77, LARGE };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void send__of_memory_that_changes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++) {
		begin(NULL);
		another_thread_stores_to(data, lengths[i]);
		send_on(lengths[i]);
		assert_int_equal(receive_at(0, LARGE), lengths[i]);
	}
}

/* What TCP has not taken of an FPDU is of the time at which the FPDU was made. */
static void send__in_parts_of_memory_that_changes(void **state)
{
	static const size_t parts[] = { 1, AW_FPDU_HEAD + 1, AW_FPDU_HEAD + LONG, LONG + 99 };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct iovec iov = { data, 3 * LONG };
		ssize_t n;

		begin(state);
		another_thread_stores_to(data, sizeof(data));
		net.takes = parts[i];
		n = aw_record_send(&sender, 0, &iov, 1, 0);
		assert_true(n == LONG || n == 2 * LONG);
		assert_int_equal(aw_record_flush(&sender, 0), 0);
		assert_int_equal(receive_at(0, LARGE), n);
	}
}

static void receive__into_memory_that_changes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++) {
		begin(NULL);
		send_on(lengths[i]);
		another_thread_stores_to(came, sizeof(came));
		assert_int_equal(receive_at(0, LARGE), lengths[i]);
		assert_int_equal(receive_at(0, LARGE), -EAGAIN);
	}
}

static void receive__into_one_buffer_named_often(void **state)
{
	struct iovec iov[AW_RECORD_FPDUS];

	begin(state);
	for (size_t i = 0; i < AW_RECORD_FPDUS; i++)
		iov[i] = (struct iovec){ came, LONG };
	send_on(AW_RECORD_FPDUS * LONG);
	assert_int_equal(aw_record_receive(&receiver, 0, iov, AW_RECORD_FPDUS, 0),
			 AW_RECORD_FPDUS * LONG);
	assert_memory_equal(came, data + (AW_RECORD_FPDUS - 1) * LONG, LONG);
}

static void assert_untouched(size_t from)
{
	for (size_t i = from; i < sizeof(came); i++)
		assert_int_equal(came[i], UNTOUCHED);
}

/* Behind long FPDUs shorter ones, which a read with much room gets together with them. */
static void receive__writes_what_it_returns(void **state)
{
	for (size_t i = 0; i < LENGTHS; i++) {
		begin(state);
		send_on(2 * LONG);
		assert_int_equal(receive_at(0, LONG), LONG);
		for (int k = 0; k < 3; k++)
			send_on(lengths[i]);
		for (ssize_t n; (n = receive_at(0, LARGE)) != -EAGAIN;) {
			assert_in_range(n, 1, LARGE);
			assert_untouched((size_t)n);
			memset(came, UNTOUCHED, (size_t)n);
		}
		assert_int_equal(net.taken, net.sent);
	}
}

static void receive__writes_nothing_whose_crc_is_wrong(void **state)
{
	for (size_t i = 0; i < LENGTHS; i++) {
		ssize_t n;

		begin(state);
		send_on(2 * LONG);
		assert_int_equal(receive_at(0, LONG), LONG);
		send_on(lengths[i]);
		net.bytes[net.sent - 1] ^= 1;
		n = receive_at(0, LARGE);
		assert_in_range(n, LONG, LARGE);
		assert_untouched((size_t)n);
		memset(came, UNTOUCHED, (size_t)n);
		assert_int_equal(receive_at(0, LARGE), -EPROTO);
		assert_untouched(0);
	}
}

/* A call's bounce buffer is no other call's; two are kept for the next calls on the processor. */
static void bounce_buffer__is_of_one_call(void **state)
{
	struct aw_bounce *taken[3], *other;

	(void)state;
	processor = -1;
	maps = unmaps = 0;
	for (int i = 0; i < 3; i++)
		taken[i] = aw_bounce_take();
	assert_int_equal(maps, 3);
	assert_true(taken[0] && taken[0] != taken[1] && taken[1] != taken[2] &&
		    taken[2] != taken[0]);
	for (int i = 0; i < 3; i++)
		aw_bounce_put(taken[i]);
	assert_int_equal(unmaps, 1);
	taken[0] = aw_bounce_take();
	processor = 1000;
	other = aw_bounce_take();
	assert_int_equal(maps, 4);
	aw_bounce_put(taken[0]);
	aw_bounce_put(other);
	processor = -1;
	assert_ptr_equal(aw_bounce_take(), taken[0]);
	assert_true(aw_bounce_take());
	assert_int_equal(maps, 4);
	assert_int_equal(unmaps, 1);
}

static void record__without_memory_for_a_bounce_buffer(void **state)
{
	size_t got = 0;

	(void)state;
	processor = 1;
	no_memory = true;
	maps = 0;
	send_on(LARGE - 77);
	assert_true(maps > 0);
	while (got < LARGE - 77) {
		ssize_t n = receive_at(got, LARGE - got);

		assert_in_range(n, 1, LARGE - got);
		got += (size_t)n;
	}
	assert_memory_equal(came, data, got);
	assert_int_equal(receive_at(0, LARGE), -EAGAIN);
	assert_int_equal(receiver.rx.have, 0);
	no_memory = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(send__of_memory_that_changes, begin),
		cmocka_unit_test_setup(send__in_parts_of_memory_that_changes, begin),
		cmocka_unit_test_setup(receive__into_memory_that_changes, begin),
		cmocka_unit_test_setup(receive__into_one_buffer_named_often, begin),
		cmocka_unit_test_setup(receive__writes_what_it_returns, begin),
		cmocka_unit_test_setup(receive__writes_nothing_whose_crc_is_wrong, begin),
		cmocka_unit_test_setup(bounce_buffer__is_of_one_call, begin),
		cmocka_unit_test_setup(record__without_memory_for_a_bounce_buffer, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
