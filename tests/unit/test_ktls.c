// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sessions whose records the kernel makes, or at one end only, or in one direction only: over the kernel's TLS of
// tests/lib/kernel_tls.h. The real one's tests are tests/kernel/test_tls_user.py.
#include "net/tls/ktls.h"

#include "../lib/kernel_tls.h"
#include "../lib/tls_files.h"
#include "../lib/tls_link.h"
#include "base/array.h"
#include "net/base/bounds.h"
#include "net/tls/tls_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 20
#define CHACHA "TLS_CHACHA20_POLY1305_SHA256"

static int make_files(void **state)
{
	setenv("ANYWARP_TLS_RECORDS", "kernel", 1);
	return tls_files_make(state);
}

/* refused: the end whose keys to send by the kernel refuses; -1: none. */
static struct tls_link connect_ends(int refused)
{
	struct tls_link link = tls_link_open(0, NULL);

	kernel_tls.refused_fd = refused < 0 ? 0 : link.fds[refused];
	tls_link_shake_hands(&link);
	kernel_tls.refused_fd = 0;
	assert_null(link.cause);
	return link;
}

/* So many bytes from one end to the other, which has room for so many at a time. */
static void say(struct tls_link *link, int from, size_t len, size_t room)
{
	static uint8_t sent[200000], got[sizeof(sent)];
	size_t left = 0, taken = 0;

	for (size_t i = 0; i < len; i++)
		sent[i] = (uint8_t)(i * 7 + i / 251 + (size_t)from);
	for (int round = 0; round < 10000 && taken < len; round++) {
		ssize_t n = left < len ? aw_tls_send(link->ends[from], sent + left, len - left) : 0;

		assert_true(n >= 0 || errno == EAGAIN);
		left += n > 0 ? (size_t)n : 0;
		(void)tls_link_pass(link, from);
		aw_tls_begin_turn(link->ends[!from]);
		while ((n = aw_tls_recv(link->ends[!from], got + taken,
					room < len - taken ? room : len - taken)) > 0)
			taken += (size_t)n;
		assert_true(n < 0 && errno == EAGAIN);
	}
	assert_int_equal(taken, len);
	assert_memory_equal(got, sent, len);
}

static void say_both_ways(struct tls_link *link)
{
	for (int turn = 0; turn < 6; turn++)
		say(link, turn % 2, 100, sizeof(uint8_t[100000]));
}

static void assert_made_by(const struct tls_link *link, enum aw_tls_by first, enum aw_tls_by second)
{
	assert_int_equal(aw_tls_by(link->ends[0]), first);
	assert_int_equal(aw_tls_by(link->ends[1]), second);
}

static void ask__tells_what_the_kernel_has(void **state)
{
	static const struct {
		int attach_errno, sends_errno;
		bool changes_keys, has;
		const char *why, *bounded;
	} rows[] = {
		{ ENOENT, 0, false, false, "modprobe tls", "modprobe tls" },
		{ EACCES, 0, false, false, "refuses it: Permission denied", "refuses it" },
		{ 0, EINVAL, false, false, "refuses it: Invalid argument", "refuses it" },
		{ 0, 0, false, true, NULL, "cannot change keys" },
		{ 0, 0, true, true, NULL, NULL },
	};
	struct kernel_tls before = kernel_tls;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct aw_kernel_tls found;
		const char *why;

		kernel_tls = (struct kernel_tls){ .attach_errno = rows[i].attach_errno,
						  .sends_errno = rows[i].sends_errno,
						  .changes_keys = rows[i].changes_keys };
		aw_kernel_tls_ask(&found);
		assert_int_equal(found.has, rows[i].has);
		assert_int_equal(found.changes_keys, rows[i].changes_keys);
		why = aw_ktls_refusal(&found, false);
		assert_int_equal(!why, !rows[i].why);
		assert_true(!why || strstr(why, rows[i].why));
		why = aw_ktls_refusal(&found, true);
		assert_int_equal(!why, !rows[i].bounded);
		assert_true(!why || strstr(why, rows[i].bounded));
	}
	kernel_tls = before;
}

/* The initiator opens the responder's tickets itself, since OpenSSL needs them as they came. */
static void begin__hands_over_both_directions(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct tls_link link = connect_ends(-1);

		assert_int_equal(aw_tls_is_resumed(link.ends[0]), i);
		assert_made_by(&link, AW_TLS_BY_BOTH, AW_TLS_BY_BOTH);
		say_both_ways(&link);
		assert_made_by(&link, AW_TLS_BY_KERNEL, AW_TLS_BY_KERNEL);
		tls_link_end(&link);
	}
}

static void begin__where_the_kernel_refuses_an_end(void **state)
{
	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		struct tls_link link = connect_ends(refused);

		say_both_ways(&link);
		assert_made_by(&link, refused == 0 ? AW_TLS_BY_USER : AW_TLS_BY_KERNEL,
			       refused == 1 ? AW_TLS_BY_USER : AW_TLS_BY_KERNEL);
		assert_int_equal(link.ends[refused]->ktls.receives, AW_KTLS_USER);
		tls_link_end(&link);
	}
}

static void begin__where_the_kernel_refuses_a_direction(void **state)
{
	struct tls_link link;

	(void)state;
	kernel_tls.receives_errno = ENOMEM;
	link = connect_ends(-1);
	say_both_ways(&link);
	assert_made_by(&link, AW_TLS_BY_BOTH, AW_TLS_BY_BOTH);
	kernel_tls.receives_errno = 0;
	tls_link_end(&link);
}

/* The responder reads the initiator's last flight, and of the records behind it whatever has come with it. */
static void shake_hands_with(struct tls_link *link, const void *octets, size_t len, size_t cut)
{
	enum aw_tls_io io = AW_TLS_MORE;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		io = aw_tls_handshake(link->ends[0]);
		if (io == AW_TLS_DONE)
			break;
		(void)tls_link_pass(link, 0);
		assert_int_equal(aw_tls_handshake(link->ends[1]), AW_TLS_MORE);
		(void)tls_link_pass(link, 1);
	}
	assert_int_equal(io, AW_TLS_DONE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(aw_tls_send(link->ends[0], octets, len), len);
	assert_true(tls_link_pass_part(link, 0, cut) > 0);
	assert_int_equal(aw_tls_handshake(link->ends[1]), AW_TLS_DONE);
}

/* Records that the responder has read in part are opened here, up to the first that has not begun. */
static void begin__at_the_end_of_a_record(void **state)
{
	static const char sent[3000];
	static char got[AW_TLS_RECORD_MAX];

	(void)state;
	for (size_t cut = 4000; cut < 8000; cut += 250) {
		struct tls_link link = tls_link_open(0, NULL);
		size_t taken = 0;
		ssize_t n;

		shake_hands_with(&link, sent, sizeof(sent), cut);
		for (size_t passed = 1; passed > 0; passed = tls_link_pass_part(&link, 0, cut)) {
			for (int turn = 0; turn < 4; turn++) {
				aw_tls_begin_turn(link.ends[1]);
				while ((n = aw_tls_recv(link.ends[1], got, sizeof(got))) > 0)
					taken += (size_t)n;
				assert_int_equal(errno, EAGAIN);
			}
		}
		assert_int_equal(taken, 3 * sizeof(sent));
		assert_int_equal(link.ends[1]->ktls.receives, AW_KTLS_KERNEL);
		tls_link_end(&link);
	}
}

/* A peer that sends without a pause leaves no moment at which nothing waits: what is behind a record is left to the kernel. */
static void begin__amid_a_stream(void **state)
{
	static const char sent[3000];
	static char got[AW_TLS_RECORD_MAX];
	struct tls_link link = tls_link_open(0, NULL);

	(void)state;
	shake_hands_with(&link, sent, sizeof(sent), 5000);
	(void)tls_link_pass(&link, 0);
	aw_tls_begin_turn(link.ends[1]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(aw_tls_recv(link.ends[1], got, sizeof(got)), sizeof(sent));
	assert_int_equal(link.ends[1]->ktls.receives, AW_KTLS_KERNEL);
	assert_int_equal(link.ends[1]->in_len, link.ends[1]->in_used);
	tls_link_end(&link);
}

static void recv__keeps_what_the_caller_has_no_room_for(void **state)
{
	struct tls_link link = connect_ends(-1);

	(void)state;
	for (size_t room = 1; room < 200000; room = room * 3 + 1)
		for (int from = 0; from < 2; from++)
			say(&link, from, 60000, room);
	tls_link_end(&link);
}

static void send__changes_keys_behind_the_bound(void **state)
{
	struct tls_link link = connect_ends(-1);

	(void)state;
	say_both_ways(&link);
	kernel_tls.sends_set = kernel_tls.receives_set = 0;
	atomic_store(&aw_bounds.tls_records_max, 3);
	for (int turn = 0; turn < 24; turn++)
		say(&link, turn % 2, 1, 100);
	assert_in_range(kernel_tls.sends_set, 6, 12);
	assert_int_equal(kernel_tls.receives_set, kernel_tls.sends_set);
	atomic_store(&aw_bounds.tls_records_max, AW_TLS_RECORDS_MAX);
	say_both_ways(&link);
	tls_link_end(&link);
}

/* Before any other record, and though nothing else is sent. */
static void recv__answers_a_key_update_that_asks(void **state)
{
	struct tls_link link = connect_ends(1);

	(void)state;
	say_both_ways(&link);
	kernel_tls.sends_set = 0;
	link.ends[0]->records.owes_update = true;
	say(&link, 1, 100, 1000);
	assert_int_equal(kernel_tls.sends_set, 1);
	say_both_ways(&link);
	assert_int_equal(kernel_tls.sends_set, 1);
	tls_link_end(&link);
}

/* Reads an end until it has no more. The errno; 0: the peer has ended. */
static int read_end(struct tls_link *link, int end)
{
	char octets[AW_TLS_RECORD_MAX];
	ssize_t n;

	do {
		aw_tls_begin_turn(link->ends[end]);
		n = aw_tls_recv(link->ends[end], octets, sizeof(octets));
	} while (n > 0);
	return n == 0 ? 0 : errno;
}

static void recv__refuses_a_record_that_was_changed(void **state)
{
	(void)state;
	for (int from = 0; from < 2; from++) {
		struct tls_link link = connect_ends(-1);
		char octets[100];
		ssize_t n;

		say_both_ways(&link);
		assert_int_equal(aw_tls_send(link.ends[from], "abc", 3), 3);
		n = recv(link.wire[from], octets, sizeof(octets), MSG_DONTWAIT);
		assert_true(n > 2);
		octets[n - 2] ^= 1;
		assert_int_equal(send(link.wire[!from], octets, (size_t)n, 0), n);
		assert_int_equal(read_end(&link, !from), EPROTO);
		assert_non_null(strstr(aw_tls_cause(link.ends[!from]), "bad record mac"));
		assert_true(tls_link_pass(&link, !from) > 0);
		assert_int_equal(read_end(&link, from), EPROTO);
		assert_non_null(strstr(aw_tls_cause(link.ends[from]), "bad record mac"));
		tls_link_end(&link);
	}
}

static void finish__is_told_from_a_cut(void **state)
{
	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		struct tls_link link = connect_ends(-1);

		say_both_ways(&link);
		assert_int_equal(aw_tls_send(link.ends[0], "abc", 3), 3);
		if (!cut)
			assert_true(aw_tls_finish(link.ends[0]));
		(void)tls_link_pass(&link, 0);
		shutdown(link.wire[1], SHUT_WR);
		assert_int_equal(read_end(&link, 1), cut ? ECONNRESET : 0);
		assert_int_equal(aw_tls_send(link.ends[0], "abc", 3), cut ? 3 : -1);
		tls_link_end(&link);
	}
}

/* A FIN that is quicker than records in the socket's TLS would cut them off. */
static void finish__waits_for_what_the_kernel_keeps(void **state)
{
	struct tls_link link = connect_ends(-1);

	(void)state;
	say_both_ways(&link);
	assert_true(aw_tls_has_left(link.ends[0]));
	kernel_tls.is_full = true;
	assert_int_equal(aw_tls_send(link.ends[0], "abc", 3), 3);
	assert_false(aw_tls_has_left(link.ends[0]));
	assert_false(aw_tls_finish(link.ends[0]));
	assert_true(aw_tls_has_output(link.ends[0]));
	assert_false(aw_tls_flush(link.ends[0]));
	kernel_tls.is_full = false;
	kernel_tls_make_room(link.fds[0]);
	assert_true(aw_tls_flush(link.ends[0]));
	assert_false(aw_tls_has_output(link.ends[0]));
	(void)tls_link_pass(&link, 0);
	assert_int_equal(read_end(&link, 1), 0);
	tls_link_end(&link);
}

/* Keys that never change stay in the kernel alone; no end changes them, be its records the kernel's or not. */
static void keys__that_cannot_change(void **state)
{
	struct tls_link link = connect_ends(-1);

	(void)state;
	atomic_store(&aw_bounds.tls_records_max, 3);
	say_both_ways(&link);
	say_both_ways(&link);
	assert_made_by(&link, AW_TLS_BY_KERNEL, AW_TLS_BY_KERNEL);
	for (int i = 0; i < 2; i++) {
		static const uint8_t none[AW_TLS_SECRET_MAX];

		assert_memory_equal(link.ends[i]->records.seals.key.secret, none, sizeof(none));
		assert_memory_equal(link.ends[i]->records.opens.key.secret, none, sizeof(none));
	}
	tls_link_end(&link);
	link = connect_ends(0);
	for (int turn = 0; turn < 4; turn++)
		say_both_ways(&link);
	atomic_store(&aw_bounds.tls_records_max, AW_TLS_RECORDS_MAX);
	tls_link_end(&link);
}

static void keys__that_a_peer_changes_all_the_same(void **state)
{
	struct tls_link link = connect_ends(0);

	(void)state;
	say_both_ways(&link);
	link.ends[0]->records.owes_update = true;
	assert_int_equal(aw_tls_send(link.ends[0], "abc", 3), 3);
	(void)tls_link_pass(&link, 0);
	assert_int_equal(read_end(&link, 1), EPROTO);
	assert_non_null(strstr(aw_tls_cause(link.ends[1]), "ANYWARP_TLS_RECORDS=user"));
	assert_true(tls_link_pass(&link, 1) > 0);
	assert_int_equal(read_end(&link, 0), EPROTO);
	tls_link_end(&link);
}

static int use_chacha(void **state)
{
	(void)state;
	tls_link_set_suites(CHACHA);
	return 0;
}

static int run_with_fixed_keys(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keys__that_cannot_change, use_chacha),
		cmocka_unit_test(keys__that_a_peer_changes_all_the_same),
	};

	return cmocka_run_group_tests(tests, make_files, tls_files_remove);
}

static int run_with_changing_keys(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask__tells_what_the_kernel_has),
		cmocka_unit_test(begin__hands_over_both_directions),
		cmocka_unit_test(begin__where_the_kernel_refuses_an_end),
		cmocka_unit_test(begin__where_the_kernel_refuses_a_direction),
		cmocka_unit_test(begin__at_the_end_of_a_record),
		cmocka_unit_test(begin__amid_a_stream),
		cmocka_unit_test(recv__keeps_what_the_caller_has_no_room_for),
		cmocka_unit_test(send__changes_keys_behind_the_bound),
		cmocka_unit_test(recv__answers_a_key_update_that_asks),
		cmocka_unit_test(recv__refuses_a_record_that_was_changed),
		cmocka_unit_test(finish__is_told_from_a_cut),
		cmocka_unit_test(finish__waits_for_what_the_kernel_keeps),
	};

	kernel_tls.changes_keys = true;
	return cmocka_run_group_tests(tests, make_files, tls_files_remove);
}

/* A process asks its kernel once: so one for each kind of kernel. */
int main(void)
{
	int status = 1;
	pid_t child;

	/* Its send is the one of tests/lib/kernel_tls.c, of which the dynamic linker knows nothing. */
	aw_io_call = NULL;
	child = fork();
	if (child == 0)
		exit(run_with_fixed_keys());
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		return 1;
	return run_with_changing_keys();
}
