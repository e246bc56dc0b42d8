// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two records under TLS on the kernel's own TCP: start-up, the stream's end, wrong records, changes of keys, looks.
#include "record_tls_scene.h"

#include "../lib/memory_scan.h"
#include "../lib/tcp.h"
#include "record/sealed.h"
#include "record/startup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void start__is_within_tls(void **state)
{
	(void)state;
	assert_int_equal(send_on(CLIENT, data, LARGE), LARGE);
	expect_at(SERVER, data, LARGE);
	assert_int_equal(send_on(SERVER, data, LARGE), LARGE);
	expect_at(CLIENT, data, LARGE);
	assert_false(record_of(CLIENT)->rx.reply_due);
}

/* The Request stays in the socket until all of it is there, and no number of the key is used up. */
static void start__waits_for_a_whole_request(void **state)
{
	uint8_t request[AW_STARTUP_SEALED_MAX];
	size_t len;

	(void)state;
	begin();
	takes = 1; /* of the client's Request; its rest is sent by hand */
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	assert_int_equal(record_of(CLIENT)->tx.rest, 0);
	len = AW_AEAD_HEAD + AW_STARTUP_HEAD + HELLO_LEN + 1 + AW_AEAD_TAG;
	tcp_recv(fds[SERVER], request, len);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(aw_record_take_request(record_of(SERVER), fds[SERVER]), -EAGAIN);
		assert_int_equal(record_of(SERVER)->rx.key.seq, 0);
		tcp_send(fds[CLIENT], request + i, 1);
	}
	assert_int_equal(take_request(), 0);
	assert_int_equal(record_of(SERVER)->rx.key.seq, 1);
	close_records(state);
}

static void start__refuses_other_requests(void **state)
{
	(void)state;
	/* The peer's hello has no bit. */
	begin();
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	refuses_hello = true;
	assert_int_equal(take_request(), -EPROTO);
	close_records(state);
	/* Another key. */
	begin();
	record_of(SERVER)->rx.key.iv[3] ^= 1;
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	assert_int_equal(take_request(), -EPROTO);
	close_records(state);
	/* A Request in clear. */
	begin();
	record_of(CLIENT)->tx.key.suite = AW_SUITE_NONE;
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	assert_int_equal(take_request(), -EPROTO);
	close_records(state);
}

/* A server that refuses the client's certificate says so when the client has gone on already. */
static void start__tells_an_alert_in_the_replys_place(void **state)
{
	uint8_t bytes[AW_SEALED_ALERT];

	(void)state;
	begin();
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	assert_int_equal(take_request(), 0);
	assert_int_equal(aw_sealed_put_alert(&record_of(SERVER)->tx.key, bytes, 116),
			 sizeof(bytes));
	tcp_send(fds[SERVER], bytes, sizeof(bytes));
	assert_int_equal(shutdown(fds[SERVER], SHUT_WR), 0);
	assert_int_equal(receive_on(CLIENT), -EPROTO);
	assert_int_equal(record_of(CLIENT)->rx.alert, 116);
	close_records(state);
}

static void end__is_close_notify(void **state)
{
	(void)state;
	assert_int_equal(send_on(CLIENT, data, 10), 10);
	assert_int_equal(aw_record_finish(record_of(CLIENT), fds[CLIENT]), 0);
	assert_int_equal(aw_record_finish(record_of(CLIENT), fds[CLIENT]), 0); /* once */
	assert_int_equal(send_on(CLIENT, data, 10), -EPIPE);
	expect_at(SERVER, data, 10);
	assert_int_equal(receive_on(SERVER), 0);
	assert_int_equal(receive_on(SERVER), 0);
	/* The other direction goes on. */
	assert_int_equal(send_on(SERVER, data, 10), 10);
	expect_at(CLIENT, data, 10);
	assert_int_equal(aw_record_finish(record_of(SERVER), fds[SERVER]), 0);
	assert_int_equal(shutdown(fds[SERVER], SHUT_WR), 0);
	assert_int_equal(receive_on(CLIENT), 0);
}

static void end__without_it_is_a_reset(void **state)
{
	(void)state;
	assert_int_equal(send_on(CLIENT, data, 10), 10);
	assert_int_equal(shutdown(fds[CLIENT], SHUT_WR), 0);
	expect_at(SERVER, data, 10);
	assert_int_equal(receive_on(SERVER), -ECONNRESET);
	assert_int_equal(receive_on(SERVER), 0);
}

/* The end that is due behind a rest is close_notify as well. */
static void end__comes_behind_a_rest(void **state)
{
	struct aw_record_tx *tx = &record_of(CLIENT)->tx;
	uint8_t junk[] = { 0 };
	size_t sent = 0;
	ssize_t n;

	(void)state;
	while ((n = send_on(CLIENT, data + sent % 1000, LARGE - sent % 1000)) > 0 &&
	       sent < 64u << 20)
		sent += (size_t)n;
	assert_int_equal(n, -EAGAIN);
	/* A rest is there for certain when TCP takes one byte of what is sealed. */
	while (tx->rest == 0) {
		n = receive_on(SERVER);
		assert_true(n > 0);
		sent -= (size_t)n;
		takes = 1;
		n = send_on(CLIENT, junk, 1);
		sent += n > 0;
		takes = 0;
		if (tx->rest == 0 && n > 0)
			break;
	}
	tx->fin_due = tx->ended = true;
	while (aw_record_flush(record_of(CLIENT), fds[CLIENT]) == -EAGAIN) {
		n = receive_on(SERVER);
		assert_true(n > 0);
		sent -= (size_t)n;
	}
	while ((n = receive_on(SERVER)) > 0)
		sent -= (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(sent, 0);
	assert_false(tx->fin_due);
}

/* A fault that came with bytes is told behind them; nothing need come for it. */
static ssize_t receive_again(int end)
{
	struct iovec iov = { came, sizeof(came) };

	if (!record_of(end)->rx.ended)
		return receive_on(end);
	return aw_record_receive(record_of(end), fds[end], &iov, 1, 0);
}

/* Sends a record of ours with one bit changed. */
static void send_changed(int end, size_t at)
{
	struct iovec iov = { data, 5 };
	struct aw_cursor from = aw_cursor_begin(&iov, 1);
	struct aw_record_tx *tx = &record_of(end)->tx;
	uint8_t bytes[AW_SEALED_DATA(5u)];

	assert_int_equal(aw_sealed_put(&tx->key, bytes, &from, 5, ++tx->msn), sizeof(bytes));
	bytes[at] ^= 4;
	tcp_send(fds[end], bytes, sizeof(bytes));
}

static void fault__of_a_tag_is_told_by_an_alert(void **state)
{
	static const size_t places[] = { AW_AEAD_HEAD, AW_SEALED_HEAD + 2, AW_SEALED_DATA(5u) - 1 };

	for (size_t i = 0; i < 3; i++) {
		connect_records(state);
		assert_int_equal(send_on(CLIENT, "right", 5), 5);
		send_changed(CLIENT, places[i]);
		expect_at(SERVER, "right", 5);
		assert_int_equal(receive_again(SERVER), -EPROTO);
		assert_int_equal(record_of(SERVER)->rx.fault, AW_E_MPA_CRC);
		aw_record_end(record_of(SERVER), fds[SERVER]);
		assert_int_equal(receive_on(CLIENT), -ECONNRESET);
		assert_int_equal(record_of(CLIENT)->rx.alert, AW_TLS_BAD_RECORD_MAC);
		assert_int_equal(send_on(SERVER, data, 1), -EPIPE);
		close_records(state);
	}
}

/* The FPDU is right for TLS, and wrong for RDMAP. */
static void fault__of_an_fpdu_is_told_by_a_terminate(void **state)
{
	(void)state;
	record_of(CLIENT)->tx.msn++;
	assert_int_equal(send_on(CLIENT, data, 5), 5);
	assert_int_equal(receive_on(SERVER), -EPROTO);
	assert_int_equal(record_of(SERVER)->rx.fault, AW_E_DDP_MSN_RANGE);
	aw_record_end(record_of(SERVER), fds[SERVER]);
	assert_int_equal(receive_on(CLIENT), -ECONNRESET);
	assert_int_equal(record_of(CLIENT)->rx.alert, 0);
}

/* Records in clear, of another type, too long, too short. */
static void fault__of_a_length(void **state)
{
	static const uint8_t heads[][AW_AEAD_HEAD] = {
		{ 23, 3, 3, 0x40, 0x0f }, { 23, 3, 3, 0, 37 }, { 23, 3, 3, 0, 20 },
		{ 22, 3, 3, 0, 60 },	  { 23, 3, 1, 0, 60 }, { 0, 22, 0x41, 0x43, 0 },
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		connect_records(state);
		tcp_send(fds[CLIENT], heads[i], AW_AEAD_HEAD);
		assert_int_equal(receive_on(SERVER), -EPROTO);
		aw_record_end(record_of(SERVER), fds[SERVER]);
		assert_int_equal(receive_on(CLIENT), -ECONNRESET);
		assert_int_equal(record_of(CLIENT)->rx.alert, AW_TLS_UNEXPECTED_MESSAGE);
		close_records(state);
	}
}

/* At the bound, one in front of it, and where a call seals several: in either direction, three times. */
static void update__comes_before_the_bound(void **state)
{
	static const uint64_t left[] = { 0, 1, 2, AW_RECORD_SEALED, AW_RECORD_SEALED + 1 };

	(void)state;
	assert_int_equal(send_on(SERVER, data, 1), 1); /* behind the Reply */
	expect_at(CLIENT, data, 1);
	for (int i = 0; i < 2 * 3 * 5; i++) {
		int from = i % 2;
		struct aw_record_key *key = &record_of(from)->tx.key, next = *key;

		assert_true(aw_key_update(&next));
		key->seq = record_of(!from)->rx.key.seq = AW_KEY_RECORDS_MAX - 1 - left[i / 2 % 5];
		for (int sends = 0; sends < 8; sends++) {
			assert_int_equal(send_on(from, data, LARGE), LARGE);
			expect_at(!from, data, LARGE);
			assert_true(key->seq < AW_KEY_RECORDS_MAX);
		}
		assert_memory_equal(key->key, next.key, sizeof(key->key));
		assert_memory_equal(key->key, record_of(!from)->rx.key.key, sizeof(key->key));
		assert_int_equal(key->seq, record_of(!from)->rx.key.seq);
	}
}

static void send_update(int end, bool asks)
{
	const uint8_t message[] = { 24, 0, 0, 1, asks, 22 }, head[] = { 23, 3, 3, 0, 22 };
	struct iovec piece = { (void *)(uintptr_t)message, sizeof(message) };
	struct aw_record_key *key = &record_of(end)->tx.key;
	uint8_t bytes[AW_SEALED_UPDATE];

	memcpy(bytes, head, sizeof(head));
	assert_true(aw_cipher.seal(key, head, &piece, 1, bytes + AW_AEAD_HEAD));
	assert_true(aw_key_update(key));
	tcp_send(fds[end], bytes, sizeof(bytes));
}

/* Asked twice, an end changes its key once, in front of what it sends next. */
static void update__is_answered(void **state)
{
	struct aw_record_key *key = &record_of(SERVER)->tx.key, before = *key, next = before;

	(void)state;
	assert_true(aw_key_update(&next));
	send_update(CLIENT, true);
	send_update(CLIENT, true);
	assert_int_equal(send_on(CLIENT, data, 10), 10);
	expect_at(SERVER, data, 10);
	assert_memory_equal(key->key, before.key, sizeof(key->key));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send_on(SERVER, data, 10), 10);
		assert_memory_equal(key->key, next.key, sizeof(key->key));
		expect_at(CLIENT, data, 10);
	}
	send_update(CLIENT, false);
	assert_int_equal(send_on(CLIENT, data, 10), 10);
	expect_at(SERVER, data, 10);
	assert_int_equal(send_on(SERVER, data, 10), 10);
	assert_memory_equal(key->key, next.key, sizeof(key->key));
}

/* Of a key that was changed, and of the last one: neither a record nor a cipher's context has it. */
static void forget_keys__wipes_them(void **state)
{
	struct scan_needle first = scan_needle_of(record_of(CLIENT)->tx.key.key), last[4];

	(void)state;
	assert_int_equal(send_on(CLIENT, data, 10), 10);
	expect_at(SERVER, data, 10);
	assert_true(scan_count(&first) > 2);
	send_update(CLIENT, true);
	for (int from = 0; from < 2; from++) {
		assert_int_equal(send_on(from, data, 10), 10);
		expect_at(!from, data, 10);
		last[2 * from] = scan_needle_of(record_of(from)->tx.key.key);
		last[2 * from + 1] = scan_needle_of(record_of(from)->tx.key.secret);
		assert_true(scan_count(&last[2 * from]) > 2);
		assert_int_equal(scan_count(&last[2 * from + 1]), 2); /* the records alone */
	}
	assert_int_equal(scan_count(&first), 0);
	for (int end = 0; end < 2; end++)
		aw_record_forget_keys(record_of(end));
	for (int i = 0; i < 4; i++)
		assert_int_equal(scan_count(&last[i]), 0);
}

static void update__has_a_bound(void **state)
{
	(void)state;
	for (int rounds = 0; rounds < 2; rounds++) {
		for (unsigned i = 0; i < AW_KEY_UPDATES_MAX; i++)
			send_update(CLIENT, false);
		assert_int_equal(send_on(CLIENT, data, 10), 10);
		expect_at(SERVER, data, 10);
	}
	for (unsigned i = 0; i <= AW_KEY_UPDATES_MAX; i++)
		send_update(CLIENT, false);
	assert_int_equal(receive_on(SERVER), -EPROTO);
}

/* The program's count opens nothing, and a look opens without taking: in front of a KeyUpdate and behind it. */
static void looks__take_nothing(void **state)
{
	struct iovec iov = { came, sizeof(came) };
	size_t due;

	(void)state;
	assert_int_equal(send_on(CLIENT, data, 100), 100);
	send_update(CLIENT, false);
	assert_int_equal(send_on(CLIENT, data + 100, 23), 23);
	opened = 0;
	while (aw_record_pending(record_of(SERVER), fds[SERVER]) != 123)
		;
	assert_int_equal(opened, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(aw_record_peek(record_of(SERVER), fds[SERVER], &iov, 1, &due),
				 123);
		assert_memory_equal(came, data, 123);
	}
	/* A part, and then the rest, of a record that is held. */
	iov.iov_len = 60;
	assert_int_equal(aw_record_receive(record_of(SERVER), fds[SERVER], &iov, 1, 0), 60);
	iov.iov_len = sizeof(came);
	assert_int_equal(aw_record_pending(record_of(SERVER), fds[SERVER]), 63);
	assert_int_equal(aw_record_peek(record_of(SERVER), fds[SERVER], &iov, 1, &due), 63);
	expect_at(SERVER, data + 60, 63);
}

static void urgent__is_an_fpdu_of_its_own(void **state)
{
	struct iovec iov = { (void *)"ab!", 3 };
	uint8_t byte = 0;

	(void)state;
	aw_record_set_wanted(record_of(SERVER), fds[SERVER], 1);
	assert_int_equal(
		setsockopt(fds[SERVER], SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int)), 0);
	assert_int_equal(aw_record_send(record_of(CLIENT), fds[CLIENT], &iov, 1, MSG_OOB), 3);
	while (aw_record_receive_urgent(record_of(SERVER), fds[SERVER], &byte, MSG_PEEK) != 1)
		;
	assert_int_equal(byte, '!');
	assert_int_equal(aw_record_receive_urgent(record_of(SERVER), fds[SERVER], &byte, 0), 1);
	assert_int_equal(byte, '!');
	expect_at(SERVER, "ab", 2);
}

static void sound__judges_the_keys(void **state)
{
	static struct aw_record copy;

	(void)state;
	copy = *record_of(CLIENT);
	assert_true(aw_record_is_sound(&copy));
	copy.rx.key.suite = 0x1304;
	assert_false(aw_record_is_sound(&copy));
	copy = *record_of(CLIENT);
	copy.tx.rest = sizeof(copy.tx.bytes);
	copy.tx.rest_at = 0;
	assert_true(aw_record_is_sound(&copy));
	copy.tx.rest_at = 1;
	assert_false(aw_record_is_sound(&copy));
}

static int load(void **state)
{
	(void)state;
	return record_tls_is_there() ? 0 : -1;
}

int main(void)
{
#define TLS_TEST(test) cmocka_unit_test_setup_teardown(test, connect_records, close_records)
	const struct CMUnitTest tests[] = {
		TLS_TEST(start__is_within_tls),
		cmocka_unit_test(start__waits_for_a_whole_request),
		cmocka_unit_test(start__refuses_other_requests),
		cmocka_unit_test(start__tells_an_alert_in_the_replys_place),
		TLS_TEST(end__is_close_notify),
		TLS_TEST(end__without_it_is_a_reset),
		TLS_TEST(end__comes_behind_a_rest),
		cmocka_unit_test(fault__of_a_tag_is_told_by_an_alert),
		TLS_TEST(fault__of_an_fpdu_is_told_by_a_terminate),
		cmocka_unit_test(fault__of_a_length),
		TLS_TEST(update__comes_before_the_bound),
		TLS_TEST(update__is_answered),
		TLS_TEST(forget_keys__wipes_them),
		TLS_TEST(update__has_a_bound),
		TLS_TEST(looks__take_nothing),
		TLS_TEST(urgent__is_an_fpdu_of_its_own),
		TLS_TEST(sound__judges_the_keys),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
