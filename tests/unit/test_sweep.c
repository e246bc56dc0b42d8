// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/sweep.h"

#include "base/array.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct aw_log_output aw_log_output;

static char output[8192];

/* The exit status of a sweep, whose standard output and error are kept. */
static int sweep_of(struct cli_sweep options)
{
	int ends[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	options.who = "anywarp check";
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		status = aw_cli_sweep(&options);
		fflush(stdout);
		_exit(status);
	}
	assert_true(pid > 0);
	close(ends[1]);
	while ((got = read(ends[0], output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)got;
	output[len] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect_lines(const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strstr(output, lines[i]))
			fail_msg("no '%s' in:\n%s", lines[i], output);
}

static char *victim[] = { AW_TEST_VICTIM, "data", NULL };

#define VERIFY "grep -qx right \"$ANYWARP_SWEEP_DIR/data\""

static void sweep__each_outcome(void **state)
{
	static const char *const lines[] = {
		"ibv_alloc_pd:nth=1                   ended with status 1\n",
		"ibv_create_cq:nth=1                  crashed with SIGABRT\n",
		"ibv_create_qp:nth=1                  hung\n",
		"ibv_reg_mr:nth=1                     ended with success, but --verify fails\n",
		"ibv_modify_qp:nth=1                  ended with status 1 and leaked\n",
		"ibv_query_qp:nth=1                   ended with status 1 and reports of the checker\n",
		"ibv_dereg_mr:nth=1                   ended with success\n",
		"ibv_poll_cq:nth=3                    ended with success\n",
		"ibv_req_notify_cq:nth=2              did not make this call\n",
		"12 runs; 1 crashed; 1 hung; 1 ended with success though the data is wrong; 1 had reports; "
		"1 leaked; 1 ended with an error; 5 ended with success; 1 did not make the call\n",
		"17 more calls did not fail in any run: --each and --runs let more\n",
		"  anywarp check --faults ibv_create_cq:nth=1 -- ",
		"12/12 ",
	};

	(void)state;
	assert_int_equal(sweep_of((struct cli_sweep){ .command = victim,
						      .verify = VERIFY,
						      .timeout_s = 1,
						      .each_max = 3,
						      .jobs = 4 }),
			 1);
	expect_lines(lines, ARRAY_LEN(lines));
	assert_null(strstr(output, "nth=4"));
}

static void sweep__as_many_runs_as_asked_for(void **state)
{
	static const char *const lines[] = { "ibv_alloc_pd:nth=1 ",
					     "1 run; 1 ended with an error\n", "28 more calls" };

	(void)state;
	assert_int_equal(
		sweep_of((struct cli_sweep){ .command = victim, .runs_max = 1, .jobs = 1 }), 0);
	expect_lines(lines, ARRAY_LEN(lines));
}

static void sweep__of_a_command_that_fails_by_itself(void **state)
{
	static char *command[] = { "sh", "-c", "echo so; exit 3", NULL };
	static const char *const lines[] = { "the run without a fault ended with status 3",
					     "  so\n" };

	(void)state;
	assert_int_equal(sweep_of((struct cli_sweep){ .command = command, .jobs = 1 }), 1);
	expect_lines(lines, ARRAY_LEN(lines));
}

static void sweep__of_a_command_without_verbs(void **state)
{
	static char *command[] = { "true", NULL };
	static const char *const lines[] = { "true makes no call of verbs or rdma_cm" };

	(void)state;
	assert_int_equal(sweep_of((struct cli_sweep){ .command = command, .jobs = 1 }), 1);
	expect_lines(lines, ARRAY_LEN(lines));
}

static void option__values(void **state)
{
	static const struct {
		char *words[3];
		bool taken, wrong;
	} rows[] = {
		{ { "--jobs", "4", NULL }, true, false },
		{ { "--jobs=0", NULL, NULL }, false, true },
		{ { "--timeout=30", NULL, NULL }, true, false },
		{ { "--timeout", NULL, NULL }, false, true },
		{ { "--verify=true", NULL, NULL }, true, false },
		{ { "--verify", NULL, NULL }, false, true },
		{ { "--each=x", NULL, NULL }, false, true },
		{ { "--log", NULL, NULL }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cli_sweep sweep = { .who = "anywarp check" };
		char *words[3] = { rows[i].words[0], rows[i].words[1], NULL };
		char **arg = words;
		bool wrong;

		assert_int_equal(aw_cli_sweep_option(&sweep, &arg, &wrong), rows[i].taken);
		assert_int_equal(wrong, rows[i].wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweep__each_outcome),
		cmocka_unit_test(sweep__as_many_runs_as_asked_for),
		cmocka_unit_test(sweep__of_a_command_that_fails_by_itself),
		cmocka_unit_test(sweep__of_a_command_without_verbs),
		cmocka_unit_test(option__values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
