// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reports on standard error and in the command's file. The program starts itself again with the settings, which the library reads
// before main.
#define _GNU_SOURCE // memfd_create
#include "check/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/base/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOLD_MAX 65536

static char told[TOLD_MAX]; /* what tell has caught of standard error */
static unsigned named; /* calls of aw_symbol_find */
static int stderr_fd, caught_fd;

size_t __real_aw_symbol_find(const void *pc, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX]);
size_t __wrap_aw_symbol_find(const void *pc, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX]);

/* A hook of libc's free is called in here. */
size_t __wrap_aw_symbol_find(const void *pc, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX])
{
	struct aw_report inner = { .rule = AW_RULE_MEMORY_FREED, .object = "" };

	named++;
	assert_true(aw_report_is_under_way());
	aw_report(&inner, "inside of another one");
	return __real_aw_symbol_find(pc, symbols);
}

static void catch_begin(void)
{
	fflush(stderr);
	stderr_fd = dup(STDERR_FILENO);
	caught_fd = memfd_create("stderr", 0);
	dup2(caught_fd, STDERR_FILENO);
}

static void catch_end(void)
{
	ssize_t len = pread(caught_fd, told, sizeof(told) - 1, 0);

	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(caught_fd);
	told[len > 0 ? len : 0] = '\0';
}

__attribute__((noinline)) static void break_rule(enum aw_rule rule, const char *object,
						 const struct aw_stack *earlier)
{
	struct aw_report report = { .rule = rule,
				    .object = object,
				    .earlier = { { "posted here", earlier } } };

	aw_report(&report, "%d bytes changed", 42);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_stack(struct aw_stack *stack)
{
	aw_stack_take(stack);
	__asm__ volatile("" ::: "memory");
}

static void expect(const char *part)
{
	if (!strstr(told, part))
		fail_msg("'%s' is not in: %s", part, told);
}

static void report__has_all_parts(void **state)
{
	struct aw_stack earlier;
	char head[128];

	(void)state;
	take_stack(&earlier);
	catch_begin();
	errno = 4711;
	break_rule(AW_RULE_SOURCE_CHANGED, "QP 0x12", &earlier);
	assert_int_equal(errno, 4711);
	catch_end();
	snprintf(head, sizeof(head),
		 "==%d== anywarp check: source-changed: 42 bytes changed\n  QP 0x12\n",
		 (int)getpid());
	assert_int_equal(strncmp(told, head, strlen(head)), 0);
	expect("    #0 ");
	expect("\n  posted here:\n    #0 ");
	expect("\n  follows: ibv_post_send(3), NOTES; RFC 5040 5.5, rule 8");
	expect("\n  remedy: write to the buffer only after");
	assert_null(strstr(told, "inside of another one"));
	if (!AW_TEST_HAVE_LIBDW)
		return;
	expect("#1 break_rule ");
	expect("test_check_report.c:");
	expect("\n  posted here:\n    #0 take_stack ");
	expect(" main ");
	assert_null(strstr(told, "libc_start"));
}

static void report__once_for_a_call(void **state)
{
	unsigned before;

	(void)state;
	catch_begin();
	before = named;
	for (int i = 0; i < 5; i++)
		break_rule(AW_RULE_OVERLAP, "QP 0x12", NULL);
	catch_end();
	expect("overlap: 42");
	assert_null(strstr(strstr(told, "overlap: 42") + 1, "overlap: 42"));
	assert_true(named > before);
	catch_begin();
	break_rule(AW_RULE_OVERLAP, "QP 0x12", NULL); /* another call of the same function */
	catch_end();
	expect("overlap: 42");
}

static void report__a_risk_says_so(void **state)
{
	(void)state;
	catch_begin();
	break_rule(AW_RULE_CQ_SMALL, "CQ 3", NULL);
	catch_end();
	expect("This is a risk: it does not change the exit status.\n");
}

static void report__suppressed_or_unwanted_does_nothing(void **state)
{
	(void)state;
	assert_false(aw_report_wants(AW_RULE_WAKEUP_LOST)); /* not in rules= */
	assert_false(aw_report_wants(AW_RULE_STATUS_IGNORED)); /* suppressed everywhere */
	assert_true(aw_report_wants(AW_RULE_LEAK)); /* suppressed in some places */
	catch_begin();
	break_rule(AW_RULE_WAKEUP_LOST, "CQ 3", NULL);
	break_rule(AW_RULE_STATUS_IGNORED, "QP 3", NULL);
	break_rule(AW_RULE_LEAK, "QP 3", NULL);
	break_rule(AW_RULE_LEAK, "QP 3", NULL);
	catch_end();
	assert_string_equal(told, "");
}

static void report__leaves_signals_as_they_are(void **state)
{
	sigset_t before, after;

	(void)state;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	catch_begin();
	break_rule(AW_RULE_OVERLAP, "QP 0x13", NULL);
	catch_end();
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&after, i), i == SIGUSR1);
	assert_false(aw_report_is_under_way());
}

static void report__of_a_child_has_its_number(void **state)
{
	char head[64];
	pid_t child;

	(void)state;
	catch_begin();
	child = fork();
	if (!child) {
		break_rule(AW_RULE_CQ_OVERRUN, "CQ 4", NULL);
		aw_report_end(); /* the parent tells of its repetitions */
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	catch_end();
	snprintf(head, sizeof(head), "==%d== anywarp check: cq-overrun: 42", (int)child);
	expect(head);
	assert_null(strstr(told, " more at "));
}

static void end__tells_repetitions(void **state)
{
	(void)state;
	catch_begin();
	aw_report_end();
	catch_end();
	expect("anywarp check: overlap: 4 more at ");
	assert_null(strstr(told, "leak"));
}

static void count_lines(const char *bytes, const char *beginning, unsigned expected)
{
	unsigned count = 0;

	for (const char *at = bytes; (at = strstr(at, beginning)); at++)
		count += at == bytes || at[-1] == '\n';
	assert_int_equal(count, expected);
}

/* Of this process and its child: reports of each rule, and the repetitions of one. */
static void file__has_three_lines_for_each(void **state)
{
	int fd = open(getenv("ANYWARP_CHECK_REPORTS"), O_RDONLY);
	ssize_t len = read(fd, told, sizeof(told) - 1);

	(void)state;
	close(fd);
	assert_true(len > 0);
	told[len] = '\0';
	count_lines(told, "K ", 6);
	count_lines(told, "K overlap\nJ {\"rule\":\"overlap\",\"class\":1,\"level\":\"error\"", 3);
	count_lines(told, "K cq-small\nJ {\"rule\":\"cq-small\",\"class\":3,\"level\":\"warning\"",
		    1);
	count_lines(told, "S {\"ruleId\":\"overlap\",\"ruleIndex\":2,\"level\":\"error\"", 3);
	count_lines(told, "R overlap 4\n", 1);
	expect("\"relatedLocations\":[{\"id\":1,\"message\":{\"text\":\"posted here\"}");
}

/* The exit status of the program that breaks the rule, and goes on to return 3, with halt=on,exit=71. */
static int run_to_halt(const char *rule)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("ANYWARP_CHECK", "halt=on,exit=71", 1);
		unsetenv("ANYWARP_CHECK_REPORTS");
		close(STDERR_FILENO);
		alarm(60);
		execl("/proc/self/exe", "unit_check_report", rule, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void halt__ends_the_process_but_for_a_risk(void **state)
{
	(void)state;
	assert_int_equal(run_to_halt("overlap"), 71);
	assert_int_equal(run_to_halt("cq-small"), 3);
}

static int break_and_return(enum aw_rule rule)
{
	break_rule(rule, "CQ 3", NULL);
	return 3;
}

/* Starts the program again with its settings, in the directory that it makes for its files. */
static int start_again(const char *program)
{
	char directory[] = "/tmp/anywarp-report-XXXXXX", settings[128], reports[64];
	FILE *file;

	if (!mkdtemp(directory))
		return 1;
	snprintf(reports, sizeof(reports), "%s/reports", directory);
	close(open(reports, O_WRONLY | O_CREAT, 0600));
	snprintf(
		settings, sizeof(settings),
		"rules=source-changed+overlap+cq-small+leak+status-ignored+cq-overrun,suppress=%s/suppress",
		directory);
	file = fopen(strchr(settings, '/'), "w");
	if (!file)
		return 1;
	fputs("status-ignored\nleak:unit_check_report\n", file);
	fclose(file);
	setenv("ANYWARP_CHECK", settings, 1);
	setenv("ANYWARP_CHECK_REPORTS", reports, 1);
	execl("/proc/self/exe", program, directory, NULL);
	return 1;
}

static int clear(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/suppress", (const char *)*state);
	unlink(path);
	unlink(getenv("ANYWARP_CHECK_REPORTS"));
	return rmdir(*state);
}

static char *directory;

static int set(void **state)
{
	*state = directory;
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report__has_all_parts),
		cmocka_unit_test(report__once_for_a_call),
		cmocka_unit_test(report__a_risk_says_so),
		cmocka_unit_test(report__suppressed_or_unwanted_does_nothing),
		cmocka_unit_test(report__leaves_signals_as_they_are),
		cmocka_unit_test(report__of_a_child_has_its_number),
		cmocka_unit_test(end__tells_repetitions),
		cmocka_unit_test(file__has_three_lines_for_each),
		cmocka_unit_test(halt__ends_the_process_but_for_a_risk),
	};

	if (argc == 1)
		return start_again(argv[0]);
	if (!strcmp(argv[1], "overlap"))
		return break_and_return(AW_RULE_OVERLAP);
	if (!strcmp(argv[1], "cq-small"))
		return break_and_return(AW_RULE_CQ_SMALL);
	directory = argv[1];
	return cmocka_run_group_tests(tests, set, clear);
}
