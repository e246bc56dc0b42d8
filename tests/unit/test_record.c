// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record on the kernel's own TCP: what poll says, what the peer is told of its faults, and how a stream ends.
#include "record/record.h"

#include "../lib/emulated.h"
#include "../lib/record_calls.h"
#include "../lib/tcp.h"
#include "wire/crc32c.h"
#include "wire/octets.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LARGE 200000u

struct end {
	int fd;
	struct aw_record record;
};

static struct end ends[2];
static uint8_t data[LARGE], came[LARGE];

const struct aw_record_calls aw_record_calls = { RECORD_CALLS };

static void connect_ends(void)
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr);

	ends[0].fd = tcp_connect(&addr);
	ends[1].fd = tcp_accept(listener);
	close(listener);
	for (int i = 0; i < 2; i++)
		aw_record_init(&ends[i].record);
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
}

static void close_ends(void)
{
	close(ends[0].fd);
	close(ends[1].fd);
}

static ssize_t send_on(struct end *end, const void *bytes, size_t len)
{
	struct iovec iov = { (void *)bytes, len };

	return aw_record_send(&end->record, end->fd, &iov, 1, 0);
}

static ssize_t receive_on(struct end *end, void *bytes, size_t len)
{
	struct iovec iov = { bytes, len };

	return aw_record_receive(&end->record, end->fd, &iov, 1, 0);
}

static short ready(const struct end *end, short events, int timeout_ms)
{
	struct pollfd pollfd = { .fd = end->fd, .events = events };

	return poll(&pollfd, 1, timeout_ms) > 0 ? pollfd.revents : 0;
}

static void await_readable(const struct end *end)
{
	assert_true(ready(end, POLLIN, TCP_WAIT_S * 1000) & POLLIN);
}

static void receive__is_readable_until_all_is_read(void **state)
{
	(void)state;
	connect_ends();
	assert_int_equal(send_on(&ends[0], data, 10), 10);
	for (int i = 0; i < 10; i += 2) {
		await_readable(&ends[1]);
		assert_int_equal(receive_on(&ends[1], came + i, 2), 2);
	}
	assert_memory_equal(came, data, 10);
	assert_false(ready(&ends[1], POLLIN, 0));
	assert_int_equal(receive_on(&ends[1], came, 2), -EAGAIN);
	close_ends();
}

static void send__fills_and_drains(void **state)
{
	size_t sent = 0, received = 0;
	ssize_t n;

	(void)state;
	/* There the end of the room is estimated (lib/record_calls.h), and poll(2) sees another. */
	if (is_emulated())
		skip();
	connect_ends();
	/* The kernel may need more of the buffer between a poll and the send: then the fd is not writable after all. */
	while (ready(&ends[0], POLLOUT, 0)) {
		n = send_on(&ends[0], data, LARGE);
		if (n == -EAGAIN)
			continue;
		assert_true(n > 0);
		assert_int_equal(ends[0].record.tx.rest, 0);
		sent += (size_t)n;
	}
	while (received < sent) {
		await_readable(&ends[1]);
		n = receive_on(&ends[1], came, LARGE);
		/* The beginning of an FPDU wakes a poller once, its rest only when all of it is there. */
		if (n == -EAGAIN) {
			await_readable(&ends[1]);
			n = receive_on(&ends[1], came, LARGE);
		}
		assert_true(n > 0);
		received += (size_t)n;
	}
	assert_true(ready(&ends[0], POLLOUT, TCP_WAIT_S * 1000) & POLLOUT);
	assert_true(send_on(&ends[0], data, 4) == 4);
	close_ends();
}

static void send__first_of_all_bytes_is_whole_with_the_smallest_buffer(void **state)
{
	int size = 1;

	(void)state;
	connect_ends();
	assert_return_code(setsockopt(ends[0].fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
			   errno);
	for (int i = 0; i < 50; i++) {
		ssize_t n = send_on(&ends[0], data, LARGE);

		assert_true(n > 0);
		for (ssize_t got = 0; got < n;) {
			ssize_t part;

			await_readable(&ends[1]);
			part = receive_on(&ends[1], came, LARGE);
			got += part > 0 ? part : 0;
		}
		assert_true(ready(&ends[0], POLLOUT, TCP_WAIT_S * 1000) & POLLOUT);
	}
	close_ends();
}

static void end__of_the_stream_comes_behind_its_bytes(void **state)
{
	(void)state;
	connect_ends();
	assert_int_equal(send_on(&ends[0], data, 5000), 5000);
	shutdown(ends[0].fd, SHUT_WR);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 5000);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 0);
	assert_int_equal(send_on(&ends[1], data, 3), 3);
	close_ends();
}

static void end__inside_of_an_fpdu_is_a_reset(void **state)
{
	uint8_t head[AW_FPDU_HEAD];

	(void)state;
	connect_ends();
	assert_int_equal(send_on(&ends[0], data, 3), 3);
	aw_fpdu_put_head(head, 100, 2);
	tcp_send(ends[0].fd, head, sizeof(head));
	shutdown(ends[0].fd, SHUT_WR);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 3);
	assert_int_equal(receive_on(&ends[1], came, LARGE), -ECONNRESET);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 0);
	close_ends();
}

/* A poller is told of an FPDU that comes in two halves when the second one is there, wherever the cut is. */
static void assert_told_when_whole(size_t payload, size_t cut)
{
	static uint8_t fpdu[AW_FPDU_MAX];
	size_t len;

	connect_ends();
	aw_fpdu_put_head(fpdu, payload, 1);
	memcpy(fpdu + AW_FPDU_HEAD, data, payload);
	len = aw_fpdu_put_trailer(fpdu, payload);
	tcp_send(ends[0].fd, fpdu, cut);
	await_readable(&ends[1]);
	assert_false(aw_record_is_readable(&ends[1].record, ends[1].fd));
	assert_false(ready(&ends[1], POLLIN, 0));
	tcp_send(ends[0].fd, fpdu + cut, len - cut);
	await_readable(&ends[1]);
	assert_true(aw_record_is_readable(&ends[1].record, ends[1].fd));
	assert_true(ready(&ends[1], POLLIN, 0));
	assert_int_equal(receive_on(&ends[1], came, LARGE), payload);
	assert_memory_equal(came, data, payload);
	assert_false(ready(&ends[1], POLLIN, 0));
	close_ends();
}

static void readable__when_an_fpdu_is_whole(void **state)
{
	const size_t cuts[] = { 1, FPDU_LEN_FIELD, AW_FPDU_HEAD, AW_FPDU_HEAD + 3 };

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		assert_told_when_whole(4, cuts[i]);
		assert_told_when_whole(AW_FPDU_PAYLOAD_MAX, cuts[i]);
	}
	assert_told_when_whole(4, aw_fpdu_len(4) - 1);
	assert_told_when_whole(AW_FPDU_PAYLOAD_MAX, aw_fpdu_len(AW_FPDU_PAYLOAD_MAX) - 1);
}

static void readable__leaves_the_error_to_the_read(void **state)
{
	uint8_t head[AW_FPDU_HEAD];

	(void)state;
	connect_ends();
	aw_fpdu_put_head(head, 100, 1);
	tcp_send(ends[0].fd, head, sizeof(head));
	shutdown(ends[0].fd, SHUT_WR);
	do
		await_readable(&ends[1]);
	while (!aw_record_is_readable(&ends[1].record, ends[1].fd));
	assert_true(aw_record_is_readable(&ends[1].record, ends[1].fd));
	assert_int_equal(receive_on(&ends[1], came, LARGE), -ECONNRESET);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 0);
	close_ends();
}

/* The Terminate that the faulty end gets, and nothing behind it. */
static void assert_terminate(int fd, enum aw_error error)
{
	uint8_t fpdu[FPDU_LEN_FIELD + DDP_UNTAGGED_LEN + TERM_CTRL_LEN + FPDU_CRC_LEN];
	struct term_msg msg;
	struct ddp_hdr ddp;

	tcp_recv(fd, fpdu, sizeof(fpdu));
	assert_int_equal(get_be16(fpdu), DDP_UNTAGGED_LEN + TERM_CTRL_LEN);
	assert_int_equal(ddp_get(fpdu + FPDU_LEN_FIELD, get_be16(fpdu), &ddp), AW_OK);
	assert_int_equal(ddp.ulp_ctrl, rdmap_ctrl(RDMAP_TERMINATE));
	assert_int_equal(ddp.qn, DDP_QN_TERMINATE);
	assert_true(term_get(fpdu + AW_FPDU_HEAD, TERM_CTRL_LEN, &msg));
	assert_int_equal(msg.error, error);
	assert_int_equal(
		get_le32(fpdu + sizeof(fpdu) - FPDU_CRC_LEN),
		crc32c_final(crc32c_update(CRC32C_INIT, fpdu, sizeof(fpdu) - FPDU_CRC_LEN)));
	tcp_assert_over(fd);
}

static void assert_refused(const uint8_t *fpdu, size_t len, enum aw_error error)
{
	connect_ends();
	assert_int_equal(send_on(&ends[0], data, 7), 7);
	tcp_send(ends[0].fd, fpdu, len);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, 7), 7);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, LARGE), -EPROTO);
	assert_int_equal(ends[1].record.rx.fault, error);
	aw_record_end(&ends[1].record, ends[1].fd);
	assert_terminate(ends[0].fd, error);
	assert_int_equal(send_on(&ends[1], data, 1), -EPIPE);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 0);
	close_ends();
}

/* An FPDU of four bytes of payload, its header changed at one byte, with a CRC that is right. */
static size_t build_wrong(uint8_t *fpdu, size_t at, uint8_t value)
{
	aw_fpdu_put_head(fpdu, 4, 2);
	memset(fpdu + AW_FPDU_HEAD, 0x11, 4);
	fpdu[at] = value;
	return aw_fpdu_put_trailer(fpdu, 4);
}

static void faults__are_told_by_a_terminate(void **state)
{
	const struct {
		size_t at;
		uint8_t value;
		enum aw_error error;
	} faults[] = {
		{ 2, 0x40, AW_E_DDP_UNTAGGED_VERSION },
		{ 2, 0x01, AW_E_DDP_MO }, /* not the last segment: a stream's Sends have one each */
		{ 2, 0xc1, AW_E_RDMAP_OPCODE }, /* tagged */
		{ 3, 0x03, AW_E_RDMAP_VERSION },
		{ 3, 0x4f, AW_E_RDMAP_OPCODE },
		{ 15, 0x09, AW_E_DDP_MSN_RANGE },
		{ 19, 0x04, AW_E_DDP_MO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		uint8_t fpdu[AW_FPDU_HEAD + 4 + AW_FPDU_TRAILER_MAX];

		assert_refused(fpdu, build_wrong(fpdu, faults[i].at, faults[i].value),
			       faults[i].error);
	}
}

static void faults__of_mpa(void **state)
{
	uint8_t fpdu[AW_FPDU_HEAD + 4 + AW_FPDU_TRAILER_MAX];
	size_t len = build_wrong(fpdu, 0, 0);

	(void)state;
	fpdu[AW_FPDU_HEAD] ^= 1;
	assert_refused(fpdu, len, AW_E_MPA_CRC);
	put_be16(fpdu, DDP_UNTAGGED_LEN - 1);
	assert_refused(fpdu, len, AW_E_MPA_FRAME);
	/* No payload: a row of them would hold a read that does not wait. */
	put_be16(fpdu, DDP_UNTAGGED_LEN);
	assert_refused(fpdu, len, AW_E_MPA_FRAME);
	put_be16(fpdu, DDP_UNTAGGED_LEN + AW_FPDU_PAYLOAD_MAX + 1);
	assert_refused(fpdu, len, AW_E_MPA_FRAME);
}

/* Until the socket has so many bytes. */
static void await_bytes(const struct end *end, int bytes)
{
	int lowat;
	socklen_t len = sizeof(lowat);

	assert_return_code(getsockopt(end->fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, &len), errno);
	setsockopt(end->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
	await_readable(end);
	setsockopt(end->fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
}

static void wanted__counts_payload_alone(void **state)
{
	(void)state;
	connect_ends();
	aw_record_set_wanted(&ends[1].record, ends[1].fd, 10);
	assert_int_equal(send_on(&ends[0], data, 4), 4);
	await_bytes(&ends[1], (int)aw_fpdu_len(4));
	assert_int_equal(aw_record_pending(&ends[1].record, ends[1].fd), 4);
	assert_false(ready(&ends[1], POLLIN, 0));
	assert_int_equal(send_on(&ends[0], data, 3), 3);
	await_bytes(&ends[1], 2 * (int)aw_fpdu_len(4));
	assert_int_equal(aw_record_pending(&ends[1].record, ends[1].fd), 7);
	assert_false(ready(&ends[1], POLLIN, 0));
	assert_int_equal(send_on(&ends[0], data, 3), 3);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 10);
	close_ends();
}

/* Whether the kernel can look behind what was counted, or not. */
static void pending__counts_what_has_come_since(void **state)
{
	size_t due = 0;

	(void)state;
	connect_ends();
	for (size_t len = 1; len <= LARGE / 4; len *= 7) {
		assert_int_equal(send_on(&ends[0], data, len), len);
		due += len;
		await_bytes(&ends[1], 1);
		while (aw_record_pending(&ends[1].record, ends[1].fd) < (ssize_t)due)
			continue;
		assert_int_equal(aw_record_pending(&ends[1].record, ends[1].fd), due);
		assert_int_equal(receive_on(&ends[1], came, len / 2 + 1), len / 2 + 1);
		due -= len / 2 + 1;
		assert_int_equal(aw_record_pending(&ends[1].record, ends[1].fd), due);
	}
	while (due > 0)
		due -= (size_t)receive_on(&ends[1], came, due);
	assert_int_equal(aw_record_pending(&ends[1].record, ends[1].fd), 0);
	close_ends();
}

/* Five bytes are left of the FPDU, and no poller is told of so few. */
static void wanted__counts_what_is_left_of_an_fpdu(void **state)
{
	(void)state;
	connect_ends();
	aw_record_set_wanted(&ends[1].record, ends[1].fd, 10);
	assert_int_equal(send_on(&ends[0], data, 20), 20);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, 15), 15);
	assert_false(ready(&ends[1], POLLIN, 0));
	assert_int_equal(send_on(&ends[0], data, 5), 5);
	await_readable(&ends[1]);
	assert_int_equal(receive_on(&ends[1], came, LARGE), 10);
	close_ends();
}

static struct aw_record copied;

/* Judges a copy of the record with another number in it. */
#define ASSERT_UNSOUND(record, field, value)               \
	do {                                               \
		memcpy(&copied, record, sizeof(copied));   \
		copied.field = value;                      \
		assert_false(aw_record_is_sound(&copied)); \
	} while (0)

static void record__of_another_process_is_judged(void **state)
{
	struct aw_record *record = &ends[1].record;
	static const uint8_t sent[100];
	uint8_t got[10];
	struct iovec from = { (void *)sent, sizeof(sent) }, to = { got, sizeof(got) };

	(void)state;
	connect_ends();
	assert_int_equal(aw_record_send(&ends[0].record, ends[0].fd, &from, 1, 0), 100);
	assert_int_equal(aw_record_receive(record, ends[1].fd, &to, 1, 0), 10);
	assert_true(record->rx.held);
	memcpy(&copied, record, sizeof(copied));
	assert_true(aw_record_is_sound(&copied));
	ASSERT_UNSOUND(record, rx.have, sizeof(copied.rx.bytes) + 1);
	ASSERT_UNSOUND(record, rx.have, 4);
	ASSERT_UNSOUND(record, rx.given, 101);
	ASSERT_UNSOUND(record, rx.bytes[0], 0xff);
	ASSERT_UNSOUND(record, rx.mark, (enum aw_mark)7);
	ASSERT_UNSOUND(record, rx.mark, AW_MARK_FRONT);
	ASSERT_UNSOUND(record, rx.error, -1);
	ASSERT_UNSOUND(record, rx.wanted, 0);
	ASSERT_UNSOUND(record, tx.rest, sizeof(copied.tx.bytes) + 1);
	ASSERT_UNSOUND(record, tx.rest_at, UINT32_MAX);
	ASSERT_UNSOUND(record, tx.rest_urgent, true);
	memcpy(&copied, record, sizeof(copied));
	memset(&copied.rx.held, 0xff, sizeof(copied.rx.held));
	assert_true(aw_record_is_sound(&copied) && copied.rx.held == true);
	close_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive__is_readable_until_all_is_read),
		cmocka_unit_test(send__fills_and_drains),
		cmocka_unit_test(send__first_of_all_bytes_is_whole_with_the_smallest_buffer),
		cmocka_unit_test(end__of_the_stream_comes_behind_its_bytes),
		cmocka_unit_test(end__inside_of_an_fpdu_is_a_reset),
		cmocka_unit_test(readable__when_an_fpdu_is_whole),
		cmocka_unit_test(readable__leaves_the_error_to_the_read),
		cmocka_unit_test(faults__are_told_by_a_terminate),
		cmocka_unit_test(faults__of_mpa),
		cmocka_unit_test(wanted__counts_payload_alone),
		cmocka_unit_test(pending__counts_what_has_come_since),
		cmocka_unit_test(wanted__counts_what_is_left_of_an_fpdu),
		cmocka_unit_test(record__of_another_process_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
