// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The wrappers of check/hook/wire.c, which this program has in libc's place, around the calls of a library that is named as a
// verbs library is. The other end of each connection is this program's own, which no fault concerns. A plan is read once, so
// each row of a table is a process.
#include "../lib/tcp.h"
#include "base/array.h"
#include "base/log.h"
#include "check/report/report.h"
#include "check_wire_calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CALL_BYTES 100
#define CALLS 4

static void drop_line(const char *line, size_t len)
{
	(void)line;
	(void)len;
}

struct aw_log_output aw_log_output = { .write = drop_line, .once = PTHREAD_ONCE_INIT };

/* No report is made here. */
bool aw_report_is_under_way(void)
{
	return false;
}

struct pair {
	int near, far; /* near: the library's */
};

struct row {
	const char *plan;
	const char *calls; /* the results of the near end's calls */
	size_t bytes; /* those that arrive */
	int flipped; /* the byte that differs, or -1 */
	int end; /* what the receiver gets behind them: 0 for a FIN, or an errno */
};

static struct pair pair_make(void)
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr);
	struct pair pair = { .near = socket(AF_INET, SOCK_STREAM, 0) };

	if (verbs_connect(pair.near, (struct sockaddr *)&addr, tcp_addr_len(&addr)) != 0)
		_exit(2);
	pair.far = tcp_accept(listener);
	return pair;
}

static size_t note(char *text, size_t len, ssize_t result)
{
	if (result >= 0)
		return len + (size_t)sprintf(text + len, "%zd ", result);
	return len + (size_t)sprintf(text + len, "%s ", strerrorname_np(errno));
}

static void fill(unsigned char *bytes)
{
	for (int i = 0; i < CALLS * CALL_BYTES; i++)
		bytes[i] = (unsigned char)i;
}

/* What is wrong, for the parent, which prints it. */
static int judge(const struct row *row, const char *calls, const unsigned char *got)
{
	unsigned char sent[CALLS * CALL_BYTES];

	fill(sent);
	if (row->flipped >= 0)
		sent[row->flipped] ^= 1;
	if (strcmp(calls, row->calls) != 0) {
		fprintf(stderr, "%s: %s\n", row->plan, calls);
		return 3;
	}
	return memcmp(sent, got, row->bytes) == 0 ? 0 : 4;
}

/* What the end gives behind the bytes: 0 or an errno. A silent one gives nothing. */
static int end_of(int fd, bool is_silent)
{
	char byte;
	ssize_t got = recv(fd, &byte, 1, is_silent ? MSG_DONTWAIT : 0);

	return got < 0 ? errno : got == 0 ? 0 : -1;
}

static int send_all(const struct row *row)
{
	unsigned char bytes[CALLS * CALL_BYTES], got[CALLS * CALL_BYTES];
	struct pair pair = pair_make();
	char calls[128];
	size_t len = 0;

	fill(bytes);
	for (size_t i = 0, at = 0; i < CALLS; i++) {
		ssize_t sent = i % 2 ? verbs_sendmsg(pair.near, bytes + at, CALL_BYTES)
				     : verbs_send(pair.near, bytes + at, CALL_BYTES);

		len = note(calls, len, sent);
		at += sent > 0 ? (size_t)sent : 0;
	}
	tcp_recv(pair.far, got, row->bytes);
	verbs_shutdown(pair.near);
	verbs_close(pair.near);
	if (end_of(pair.far, row->end == EAGAIN) != row->end)
		return 5;
	return judge(row, calls, got);
}

static int receive_all(const struct row *row)
{
	unsigned char bytes[CALLS * CALL_BYTES], got[CALLS * CALL_BYTES];
	struct pair pair = pair_make();
	char calls[128];
	size_t len = 0, at = 0;

	fill(bytes);
	tcp_send(pair.far, bytes, sizeof(bytes));
	for (int i = 0; i < CALLS; i++) {
		ssize_t received = verbs_recv(pair.near, got + at, CALL_BYTES, 0);

		len = note(calls, len, received);
		at += received > 0 ? (size_t)received : 0;
	}
	if (row->end == ECONNRESET && end_of(pair.far, false) != row->end)
		return 5;
	return judge(row, calls, got);
}

static void run(const struct row *row, int (*move)(const struct row *row))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("ANYWARP_FAULTS", row->plan, 1);
		_exit(move(row));
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("%s: status %#x", row->plan, (unsigned)status);
}

static void send__with_a_fault(void **state)
{
	static const struct row rows[] = {
		{ "", "100 100 100 100 ", 400, -1, 0 },
		{ "wire:reset:byte=250", "100 100 50 ECONNRESET ", 250, -1, ECONNRESET },
		{ "wire:fin:byte=250", "100 100 50 EPIPE ", 250, -1, 0 },
		{ "wire:silence:byte=250", "100 100 50 100 ", 250, -1, EAGAIN },
		{ "wire:flip:byte=0", "100 100 100 100 ", 400, 0, 0 },
		{ "wire:flip:byte=132", "100 100 100 100 ", 400, 132, 0 },
		{ "wire:flip:byte=133", "100 100 100 100 ", 400, 133, 0 },
		{ "wire:flip:byte=199", "100 100 100 100 ", 400, 199, 0 },
		{ "wire:slow:rate=1MB/s", "100 100 100 100 ", 400, -1, 0 },
		{ "wire:reset:nth=2", "100 100 100 100 ", 400, -1, 0 },
		{ "wire:reset:recv", "100 100 100 100 ", 400, -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&rows[i], send_all);
}

static void recv__with_a_fault(void **state)
{
	static const struct row rows[] = {
		{ "", "100 100 100 100 ", 400, -1, 0 },
		{ "wire:reset:recv:byte=150", "100 50 ECONNRESET ECONNRESET ", 150, -1,
		  ECONNRESET },
		{ "wire:fin:recv:byte=150", "100 50 0 0 ", 150, -1, 0 },
		{ "wire:silence:recv:byte=150", "100 50 EAGAIN EAGAIN ", 150, -1, 0 },
		{ "wire:flip:recv:byte=150", "100 100 100 100 ", 400, 150, 0 },
		{ "wire:flip:byte=150", "100 100 100 100 ", 400, -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&rows[i], receive_all);
}

/* A look at a byte does not move it. */
static int peek(const struct row *row)
{
	struct pair pair = pair_make();
	unsigned char got[2] = { 0, 0 };

	(void)row;
	tcp_send(pair.far, "ab", 2);
	if (verbs_recv(pair.near, got, 1, MSG_PEEK) != 1 || got[0] != 'a')
		return 2;
	if (verbs_recv(pair.near, got, 1, 0) != 1 || got[0] != 'a')
		return 3;
	return verbs_recv(pair.near, got, 1, 0) == 1 && got[0] == ('b' ^ 1) ? 0 : 4;
}

static void recv__with_a_look(void **state)
{
	static const struct row row = { .plan = "wire:flip:recv:byte=1" };

	(void)state;
	run(&row, peek);
}

static int tcp_unacknowledged(int fd)
{
	int bytes = -1;

	return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

/* Some kernels let only root attach a filter. */
static bool may_filter(int fd)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, UINT_MAX);
	const struct sock_fprog filter = { .len = 1, .filter = &pass };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

/* Silence on receipt leaves the sender without acknowledgements. */
static int unacknowledged(const struct row *row)
{
	struct pair pair = pair_make();
	char byte;

	(void)row;
	if (verbs_recv(pair.near, &byte, 1, 0) != -1 || errno != EAGAIN)
		return 2;
	tcp_send(pair.far, "ab", 2);
	if (verbs_recv(pair.near, &byte, 1, 0) != -1 || errno != EAGAIN)
		return 3;
	return !may_filter(pair.far) || tcp_unacknowledged(pair.far) == 2 ? 0 : 4;
}

static void recv__in_silence(void **state)
{
	static const struct row row = { .plan = "wire:silence:recv" };

	(void)state;
	run(&row, unacknowledged);
}

/* The second connection of the library, which it accepts; the program's own between them does not count. */
static int accepted(const struct row *row)
{
	struct pair pair = pair_make();
	struct sockaddr_storage addr;
	int listener = tcp_listen(2, &addr);
	int own = tcp_connect(&addr), other, taken;

	(void)row;
	if (tcp_accept(listener) < 0)
		return 2;
	other = tcp_connect(&addr);
	taken = verbs_accept(listener);
	if (verbs_send(pair.near, "a", 1) != 1 || send(own, "a", 1, 0) != 1 ||
	    send(other, "a", 1, 0) != 1)
		return 3;
	return verbs_send(taken, "a", 1) == -1 && errno == ECONNRESET ? 0 : 4;
}

static void accept4__a_second_connection(void **state)
{
	static const struct row row = { .plan = "wire:reset:nth=2" };

	(void)state;
	run(&row, accepted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__with_a_fault),
		cmocka_unit_test(recv__with_a_fault),
		cmocka_unit_test(recv__with_a_look),
		cmocka_unit_test(recv__in_silence),
		cmocka_unit_test(accept4__a_second_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
