// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The statistics table: its writer, its reader, forks, and tables that no friend has written.
#define _GNU_SOURCE
#include "../lib/proc.h"
#include "net/stat/stat.h"

#include "net/stat/stat_read.h"
#include "net/stat/totals_layout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/limit.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* The one row of this process's table. */
static union aw_stat_row read_one(pid_t pid)
{
	struct aw_stat_copy copy;
	union aw_stat_row row;

	assert_int_equal(aw_stat_read(pid, &copy), AW_STAT_READ);
	assert_int_equal(copy.count, 1);
	row = copy.rows[0];
	free(copy.rows);
	return row;
}

static void assert_absent(void)
{
	struct aw_stat_copy copy;

	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_ABSENT);
	assert_null(copy.rows);
}

/* The fd of this process's table. */
static int find_table(void)
{
	char path[32], target[64];
	ssize_t len;

	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		if (!strcmp(target, "/memfd:" AW_STAT_NAME " (deleted)"))
			return fd;
	}
	fail_msg("no table");
	return -1;
}

/* Ends the process: 0 when the job was done, something else when an assertion failed. */
static void child_run(void (*job)(union aw_stat_row *row), union aw_stat_row *row)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(limit_s(30));
		job(row);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- the writer */

static void take__makes_the_table_and_the_last_give_ends_it(void **state)
{
	int fds = proc_fds();
	union aw_stat_row *row, *other;

	(void)state;
	assert_absent();
	row = aw_stat_take(AW_STAT_CQ, 7);
	other = aw_stat_take(AW_STAT_QP, 8);
	assert_non_null(row);
	assert_ptr_not_equal(row, other);
	assert_int_equal(proc_fds(), fds + 1);
	aw_stat_give(other);
	aw_stat_set64(&row->cq.cqes, UINT64_MAX);
	assert_int_equal(read_one(getpid()).any.number, 7);
	assert_true(read_one(getpid()).cq.cqes == UINT64_MAX);
	aw_stat_give(row);
	aw_stat_give(NULL);
	assert_int_equal(proc_fds(), fds);
	assert_absent();
}

static void take__gives_a_row_again_without_what_it_held(void **state)
{
	union aw_stat_row *first = aw_stat_take(AW_STAT_CQ, 1), *row, *again;

	(void)state;
	row = aw_stat_take(AW_STAT_CQ, 2);
	aw_stat_set64(&row->words[15], 9);
	aw_stat_give(row);
	again = aw_stat_take(AW_STAT_LISTENER, 3);
	assert_ptr_equal(again, row);
	assert_true(again->words[15] == 0);
	aw_stat_give(again);
	aw_stat_give(first);
}

static void take__ends_at_the_bound(void **state)
{
	union aw_stat_row **rows = calloc(AW_STAT_ROWS, sizeof(*rows));
	struct aw_stat_copy copy;

	(void)state;
	for (uint32_t i = 0; i < AW_STAT_ROWS; i++) {
		rows[i] = aw_stat_take(AW_STAT_CQ, i);
		assert_non_null(rows[i]);
	}
	assert_null(aw_stat_take(AW_STAT_CQ, 0));
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	assert_int_equal(copy.count, AW_STAT_ROWS);
	assert_int_equal(copy.head.rowless, 1);
	for (uint32_t i = 0; i < AW_STAT_ROWS; i++)
		assert_int_equal(copy.rows[i].any.number, i);
	free(copy.rows);
	for (uint32_t i = 0; i < AW_STAT_ROWS; i++)
		aw_stat_give(rows[i]);
	free(rows);
	assert_absent();
}

/* ftruncate(2) would raise SIGXFSZ. */
static void take__makes_no_table_beyond_the_file_size_limit(void **state)
{
	struct rlimit limit, low;
	int fds = proc_fds();

	(void)state;
	getrlimit(RLIMIT_FSIZE, &limit);
	low = limit;
	low.rlim_cur = AW_STAT_FILE_LEN - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	errno = 77;
	assert_null(aw_stat_take(AW_STAT_CQ, 1));
	assert_int_equal(errno, 77);
	assert_int_equal(proc_fds(), fds);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void give__leaves_a_file_that_has_the_number(void **state)
{
	union aw_stat_row *row = aw_stat_take(AW_STAT_CQ, 1);
	int fd = find_table();

	(void)state;
	assert_int_equal(dup2(STDOUT_FILENO, fd), fd);
	aw_stat_give(row);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static void count_end__adds_up(void **state)
{
	union aw_stat_row *row;
	struct aw_stat_copy copy;

	(void)state;
	aw_stat_count_end(true, true, true);
	row = aw_stat_take(AW_STAT_CQ, 1);
	aw_stat_count_end(true, true, false);
	aw_stat_count_end(false, false, true);
	aw_stat_count_end(false, true, false);
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	assert_int_equal(copy.head.crc_errors, 1);
	assert_int_equal(copy.head.terminates_sent, 2);
	assert_int_equal(copy.head.terminates_received, 1);
	free(copy.rows);
	aw_stat_give(row);
}

/* The file that the environment of this process names, from main on. */
static struct aw_totals *totals;
static uint32_t totals_mark;

static int totals_make(void **state)
{
	char root[] = "/tmp/anywarp-test-totals-XXXXXX", path[sizeof(root) + 16];
	struct stat file;
	union aw_stat_row *row;
	int fd;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/" AW_TOTALS_NAME, root);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(ftruncate(fd, AW_TOTALS_LEN), 0);
	assert_int_equal(fstat(fd, &file), 0);
	totals = mmap(NULL, AW_TOTALS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(totals, MAP_FAILED);
	close(fd);
	totals->magic = AW_TOTALS_MAGIC;
	totals_mark = (uint32_t)file.st_ino;
	setenv("ANYWARP_PATHS", root, 1);

	/* The first table maps it, and nothing needs its name from then on. */
	(void)state;
	row = aw_stat_take(AW_STAT_CQ, 0);
	assert_non_null(row);
	aw_stat_give(row);
	return unlink(path) | rmdir(root);
}

static void give__leaves_what_a_qp_has_counted_to_the_totals(void **state)
{
	uint64_t begun = totals->begun, bytes = totals->count.out.bytes,
		 fpdus = totals->count.in.fpdus;
	union aw_stat_row *qp = aw_stat_take(AW_STAT_QP, 1), *cq = aw_stat_take(AW_STAT_CQ, 2);
	struct aw_stat_copy copy;

	(void)state;
	qp->qp.count.out.bytes = 1000;
	qp->qp.count.in.fpdus = 3;
	cq->cq.cqes = 77;
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	assert_int_equal(copy.head.totals, totals_mark);
	free(copy.rows);
	aw_stat_give(cq);
	assert_true(totals->begun == begun);
	aw_stat_give(qp);
	assert_true(totals->begun == begun + 1 && totals->ended == totals->begun);
	assert_true(totals->count.out.bytes == bytes + 1000);
	assert_true(totals->count.in.fpdus == fpdus + 3);
}

static void end_with_rows(union aw_stat_row *row)
{
	union aw_stat_row *qp = aw_stat_take(AW_STAT_QP, 1);

	/* A row that the child has inherited is its parent's to leave. */
	row->qp.count.out.bytes += 5000;
	qp->qp.count.out.bytes = 70;
	exit(0);
}

static void exit__leaves_what_the_qps_have_counted_to_the_totals(void **state)
{
	uint64_t bytes = totals->count.out.bytes;
	union aw_stat_row *row = aw_stat_take(AW_STAT_QP, 1);

	(void)state;
	row->qp.count.out.bytes = 600;
	child_run(end_with_rows, row);
	assert_true(totals->count.out.bytes == bytes + 70);
	aw_stat_give(row);
	assert_true(totals->count.out.bytes == bytes + 70 + 600);
}

static void address__of_each_family(void **state)
{
	struct sockaddr_storage from = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&from;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&from;
	uint16_t family = 1, port = 1;
	uint64_t address[2] = { 1, 1 };
	char text[INET6_ADDRSTRLEN];

	(void)state;
	in->sin_port = htons(18515);
	inet_pton(AF_INET, "192.0.2.1", &in->sin_addr);
	aw_stat_address(&from, &family, &port, address);
	assert_int_equal(family, AF_INET);
	assert_int_equal(port, 18515);
	assert_string_equal(inet_ntop(AF_INET, address, text, sizeof(text)), "192.0.2.1");
	assert_true(address[1] == 0);
	from.ss_family = AF_INET6;
	in6->sin6_port = htons(1);
	inet_pton(AF_INET6, "2001:db8::1", &in6->sin6_addr);
	aw_stat_address(&from, &family, &port, address);
	assert_int_equal(family, AF_INET6);
	assert_string_equal(inet_ntop(AF_INET6, address, text, sizeof(text)), "2001:db8::1");
	from.ss_family = AF_UNIX;
	aw_stat_address(&from, &family, &port, address);
	assert_int_equal(family, AF_UNSPEC);
	assert_int_equal(port, 0);
}

/* --- forks */

static void child_has_its_own(union aw_stat_row *row)
{
	union aw_stat_row *own;
	int fds = proc_fds();

	assert_absent();
	aw_stat_set64(&row->cq.cqes, 5);
	aw_stat_give(row);
	own = aw_stat_take(AW_STAT_CQ, 9);
	assert_non_null(own);
	assert_int_equal(proc_fds(), fds + 1);
	assert_int_equal(read_one(getpid()).any.number, 9);
	assert_int_equal(read_one(getppid()).any.number, 1);
	aw_stat_set64(&row->cq.cqes, 6);
	assert_true(read_one(getppid()).cq.cqes == 4);
	aw_stat_give(own);
	assert_int_equal(proc_fds(), fds);
	aw_stat_set64(&row->cq.cqes, 7);
}

static void fork__leaves_the_table_to_the_parent(void **state)
{
	union aw_stat_row *row = aw_stat_take(AW_STAT_CQ, 1);

	(void)state;
	aw_stat_set64(&row->cq.cqes, 4);
	child_run(child_has_its_own, row);
	assert_true(read_one(getpid()).cq.cqes == 4);
	aw_stat_give(row);
}

/* --- the reader */

/* A table as a stranger may make it, of one row. */
struct forged {
	int fd;
	struct aw_stat_head head;
	union aw_stat_row row;
};

static void forge(struct forged *forged, off_t len, int seals)
{
	*forged = (struct forged){
		.fd = memfd_create(AW_STAT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING),
		.head = { .magic = AW_STAT_MAGIC, .layout = AW_STAT_LAYOUT, .end = 1 },
		.row.any = { AW_STAT_CQ, 3 },
	};
	assert_int_equal(ftruncate(forged->fd, len), 0);
	assert_int_equal(fcntl(forged->fd, F_ADD_SEALS, seals), 0);
}

static enum aw_stat_result read_forged(const struct forged *forged, struct aw_stat_copy *copy)
{
	pwrite(forged->fd, &forged->head, sizeof(forged->head), 0);
	pwrite(forged->fd, &forged->row, sizeof(forged->row), AW_STAT_HEAD_LEN);
	return aw_stat_read_fd(forged->fd, copy);
}

static void assert_strange(const struct forged *forged)
{
	struct aw_stat_copy copy;

	assert_int_equal(read_forged(forged, &copy), AW_STAT_STRANGE);
	assert_null(copy.rows);
	close(forged->fd);
}

static void read__takes_a_table_that_is_right(void **state)
{
	struct aw_stat_copy copy;
	struct forged forged;

	(void)state;
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	assert_int_equal(read_forged(&forged, &copy), AW_STAT_READ);
	assert_int_equal(copy.count, 1);
	assert_int_equal(copy.rows[0].any.number, 3);
	free(copy.rows);
	close(forged.fd);
}

static void read__refuses_other_files(void **state)
{
	struct forged forged;

	(void)state;
	forge(&forged, AW_STAT_FILE_LEN, 0);
	assert_strange(&forged);
	forge(&forged, AW_STAT_FILE_LEN, F_SEAL_GROW);
	assert_strange(&forged);
	forge(&forged, AW_STAT_FILE_LEN - 1, SEALS);
	assert_strange(&forged);
	forge(&forged, 0, SEALS);
	assert_strange(&forged);
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.head.magic++;
	assert_strange(&forged);
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.head.layout++;
	assert_strange(&forged);
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.head.end = AW_STAT_ROWS + 1;
	assert_strange(&forged);
	forged.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_strange(&forged);
}

/* A hole of the largest size has no row. */
static void read__of_a_hole(void **state)
{
	struct aw_stat_copy copy;
	struct forged forged;

	(void)state;
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.head.end = AW_STAT_ROWS;
	assert_int_equal(read_forged(&forged, &copy), AW_STAT_READ);
	assert_int_equal(copy.count, 1);
	free(copy.rows);
	close(forged.fd);
}

static void assert_left_out(const union aw_stat_row *row)
{
	struct aw_stat_copy copy;
	struct forged forged;

	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.row = *row;
	assert_int_equal(read_forged(&forged, &copy), AW_STAT_READ);
	assert_int_equal(copy.count, 0);
	free(copy.rows);
	close(forged.fd);
}

static void read__leaves_out_rows_that_cannot_be_right(void **state)
{
	union aw_stat_row rows[] = {
		{ .any.kind = AW_STAT_NONE },
		{ .any.kind = AW_STAT_LISTENER + 1 },
		{ .any.kind = UINT32_MAX },
		{ .qp = { .kind = AW_STAT_QP, .type = AW_STAT_UC + 1 } },
		{ .qp = { .kind = AW_STAT_QP, .now = AW_STAT_QP_NOW(7, 0) } },
		{ .qp = { .kind = AW_STAT_QP, .path = 8 } },
		{ .qp = { .kind = AW_STAT_QP, .now = AW_STAT_QP_NOW(0, 8) } },
		{ .qp = { .kind = AW_STAT_QP, .peer_family = AF_UNIX } },
		{ .listener = { .kind = AW_STAT_LISTENER, .family = AF_PACKET } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_left_out(&rows[i]);
}

static void write_noise(int fd, unsigned int *seed)
{
	union aw_stat_row row;

	for (uint32_t i = 0; i < 600; i++) {
		for (size_t word = 0; word < sizeof(row.words) / sizeof(row.words[0]); word++)
			row.words[word] = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed);
		row.any.kind %= AW_STAT_LISTENER + 2;
		row.qp.now &= 0x0707;
		pwrite(fd, &row, sizeof(row), AW_STAT_HEAD_LEN + (off_t)(i * sizeof(row)));
	}
}

static void read__of_noise(void **state)
{
	unsigned int seed = (unsigned int)getpid();
	struct aw_stat_copy copy;
	struct forged forged;

	(void)state;
	print_message("seed %u\n", seed);
	forge(&forged, AW_STAT_FILE_LEN, SEALS);
	forged.head.end = 600;
	assert_int_equal(read_forged(&forged, &copy), AW_STAT_READ);
	free(copy.rows);
	write_noise(forged.fd, &seed);
	assert_int_equal(aw_stat_read_fd(forged.fd, &copy), AW_STAT_READ);
	for (uint32_t i = 0; i < copy.count; i++) {
		assert_in_range(copy.rows[i].any.kind, AW_STAT_DEVICE, AW_STAT_LISTENER);
		if (copy.rows[i].any.kind == AW_STAT_QP)
			assert_true(AW_STAT_QP_STATE(copy.rows[i].qp.now) <= 6);
	}
	free(copy.rows);
	close(forged.fd);
}

/* A process may have files of that name beside its table. */
static void read__passes_over_a_forged_table_beside_the_right_one(void **state)
{
	struct forged before, behind;
	union aw_stat_row *row;
	struct aw_stat_copy copy;

	(void)state;
	forge(&before, 4096, 0);
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_STRANGE);
	row = aw_stat_take(AW_STAT_CQ, 1);
	forge(&behind, 4096, 0);
	assert_int_equal(read_one(getpid()).any.number, 1);
	aw_stat_give(row);
	close(before.fd);
	close(behind.fd);
}

/* What the reader pauses for, and how often it has. */
static struct forged *in_the_making;
static int pauses;

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time, (void)left;
	pauses++;
	if (!in_the_making)
		return 0;
	if (pauses == 1) {
		assert_int_equal(ftruncate(in_the_making->fd, AW_STAT_FILE_LEN), 0);
		assert_int_equal(fcntl(in_the_making->fd, F_ADD_SEALS, SEALS), 0);
	} else {
		pwrite(in_the_making->fd, &in_the_making->head, sizeof(in_the_making->head), 0);
	}
	return 0;
}

static void read__waits_for_a_table_that_is_being_made(void **state)
{
	struct aw_stat_copy copy;
	struct forged forged;

	(void)state;
	forge(&forged, 0, 0);
	in_the_making = &forged;
	pauses = 0;
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	in_the_making = NULL;
	assert_int_equal(pauses, 2);
	free(copy.rows);
	close(forged.fd);
}

static void read__does_not_wait_for_a_stranger_for_long(void **state)
{
	struct aw_stat_copy copy;
	struct forged forged;

	(void)state;
	forge(&forged, 4096, 0);
	pauses = 0;
	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_STRANGE);
	assert_in_range(pauses, 1, 100);
	close(forged.fd);
}

static void read__of_no_process(void **state)
{
	struct aw_stat_copy copy;

	(void)state;
	assert_int_equal(aw_stat_read(1 << 22, &copy), AW_STAT_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__makes_the_table_and_the_last_give_ends_it),
		cmocka_unit_test(take__gives_a_row_again_without_what_it_held),
		cmocka_unit_test(take__ends_at_the_bound),
		cmocka_unit_test(take__makes_no_table_beyond_the_file_size_limit),
		cmocka_unit_test(give__leaves_a_file_that_has_the_number),
		cmocka_unit_test(count_end__adds_up),
		cmocka_unit_test(give__leaves_what_a_qp_has_counted_to_the_totals),
		cmocka_unit_test(exit__leaves_what_the_qps_have_counted_to_the_totals),
		cmocka_unit_test(address__of_each_family),
		cmocka_unit_test(fork__leaves_the_table_to_the_parent),
		cmocka_unit_test(read__takes_a_table_that_is_right),
		cmocka_unit_test(read__refuses_other_files),
		cmocka_unit_test(read__of_a_hole),
		cmocka_unit_test(read__leaves_out_rows_that_cannot_be_right),
		cmocka_unit_test(read__of_noise),
		cmocka_unit_test(read__passes_over_a_forged_table_beside_the_right_one),
		cmocka_unit_test(read__waits_for_a_table_that_is_being_made),
		cmocka_unit_test(read__does_not_wait_for_a_stranger_for_long),
		cmocka_unit_test(read__of_no_process),
	};

	return cmocka_run_group_tests_name("stat", tests, totals_make, NULL);
}
