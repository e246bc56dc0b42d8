// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // sched_getaffinity
#include "cli/sweep.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/slice.h"
#include "check/faults/names.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/sweep_run.h"
#include "cli/sweep_table.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SECOND INT64_C(1000000000)
#define JOBS_MAX 64
#define RUNS_MAX 100000
#define TIMEOUT_MIN 10
#define FIRST_LINES 10 // of a first run that failed

struct sweep {
	struct cli_sweep options; // without zeros
	struct sweep_run first;
	struct sweep_run *runs;
	size_t count;
	uint64_t left_out; // calls
	int64_t timeout_ns; // 0: no limit
	sigset_t signals;
};

bool aw_cli_sweep_option(struct cli_sweep *sweep, char ***arg, bool *wrong)
{
	const struct {
		const char *name;
		unsigned max, *number;
	} numbers[] = {
		{ "--jobs", JOBS_MAX, &sweep->jobs },
		{ "--timeout", 86400, &sweep->timeout_s },
		{ "--runs", RUNS_MAX, &sweep->runs_max },
		{ "--each", RUNS_MAX, &sweep->each_max },
	};
	const char *value;

	*wrong = false;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		unsigned long number;

		if (!aw_launch_value(arg, numbers[i].name, &value))
			continue;
		*wrong = !aw_slice_number(aw_slice_of(value), numbers[i].max, &number) || !number;
		if (*wrong)
			fprintf(stderr, "%s: %s needs a number from 1 to %u\n", sweep->who,
				numbers[i].name, numbers[i].max);
		else
			*numbers[i].number = (unsigned)number;
		return !*wrong;
	}
	if (!aw_launch_value(arg, "--verify", &value))
		return false;
	sweep->verify = value;
	*wrong = !value || !*value;
	if (*wrong)
		fprintf(stderr,
			"%s: --verify needs a command of the shell, for example 'cmp a b'\n",
			sweep->who);
	return !*wrong;
}

static void kill_all(struct sweep_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!runs[i].pid)
			continue;
		aw_sweep_run_kill(&runs[i]);
		waitpid(runs[i].pid, NULL, 0);
		aw_sweep_run_remove(&runs[i]);
	}
}

static void kill_late(const struct sweep *sweep, struct sweep_run *run)
{
	if (!sweep->timeout_ns || run->is_late || aw_now_ns() - run->start_ns < sweep->timeout_ns)
		return;
	run->is_late = true;
	aw_sweep_run_kill(run);
}

static bool has_ended(const struct sweep_run *run)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == run->pid;
}

// Waits until something happens, or the first of the runs is late. The number of a signal that ends the sweep, or 0.
static int wait_for_news(const struct sweep *sweep, const struct sweep_run *runs, size_t count)
{
	int64_t left_ns = 60 * SECOND;
	struct timespec left;
	int got;

	for (size_t i = 0; sweep->timeout_ns && i < count; i++) {
		int64_t due = runs[i].start_ns + sweep->timeout_ns - aw_now_ns();

		if (runs[i].pid && !runs[i].is_late && due < left_ns)
			left_ns = due;
	}
	if (left_ns < 1000000)
		left_ns = 1000000;
	left = (struct timespec){ left_ns / SECOND, left_ns % SECOND };
	got = sigtimedwait(&sweep->signals, NULL, &left);
	return got == SIGINT || got == SIGTERM || got == SIGHUP ? got : 0;
}

// Runs the first one alone, without a fault, to its end.
static int run_first(struct sweep *sweep)
{
	int ended_by = 0;

	if (!aw_sweep_run_start(&sweep->options, &sweep->first))
		return CLI_FAILED;
	for (;;) {
		if (has_ended(&sweep->first) && aw_sweep_run_reap(&sweep->options, &sweep->first))
			return CLI_OK;
		ended_by = wait_for_news(sweep, &sweep->first, 1);
		if (ended_by)
			break;
		kill_late(sweep, &sweep->first);
	}
	kill_all(&sweep->first, 1);
	return 128 + ended_by;
}

static bool first_is_good(const struct sweep *sweep)
{
	const struct sweep_run *first = &sweep->first;
	char words[SWEEP_WORDS_MAX];

	if (first->outcome == SWEEP_SURVIVED || first->outcome == SWEEP_LEAKED ||
	    first->outcome == SWEEP_REPORTED)
		return true;
	aw_sweep_run_tell(first, words, sizeof(words));
	fprintf(stderr,
		"%s: the run without a fault %s: a sweep needs one that succeeds%s. It printed:\n",
		sweep->options.who, words,
		sweep->options.jobs > 1
			? " in a network of its own, which has only loopback; --jobs 1 leaves it in this one"
			: "");
	aw_sweep_run_show(first, FIRST_LINES);
	return false;
}

// First the first call of each function, then the second, so that a bound leaves none out.
static bool plan_runs(struct sweep *sweep)
{
	static uint64_t calls[AW_FAULT_NAMES_MAX];
	size_t room = sweep->options.runs_max;
	uint64_t total = 0;

	sweep->runs = calloc(room, sizeof(*sweep->runs));
	if (!sweep->runs || !aw_sweep_run_calls(&sweep->first, calls)) {
		fprintf(stderr, "%s: cannot plan the runs: %s\n", sweep->options.who,
			strerror(errno));
		return false;
	}
	for (unsigned name = 0; aw_fault_name(name); name++)
		total += calls[name];
	for (uint64_t nth = 1; nth <= sweep->options.each_max; nth++)
		for (unsigned name = 0; aw_fault_name(name); name++)
			if (calls[name] >= nth && sweep->count < room)
				sweep->runs[sweep->count++].place =
					(struct sweep_place){ name, nth };
	sweep->left_out = total - sweep->count;
	if (sweep->count)
		return true;
	fprintf(stderr, "%s: %s makes no call of verbs or rdma_cm: there is nothing to sweep\n",
		sweep->options.who, sweep->options.command[0]);
	return false;
}

// Runs all, as many at a time as the user wants.
static int run_all(struct sweep *sweep)
{
	size_t begun = 0, done = 0;
	int ended_by = 0;

	while (done < sweep->count && !ended_by) {
		while (begun < sweep->count && begun - done < sweep->options.jobs) {
			if (!aw_sweep_run_start(&sweep->options, &sweep->runs[begun])) {
				kill_all(sweep->runs, begun);
				return CLI_FAILED;
			}
			begun++;
		}
		ended_by = wait_for_news(sweep, sweep->runs, begun);
		for (size_t i = 0; i < begun; i++) {
			struct sweep_run *run = &sweep->runs[i];

			if (!run->pid)
				continue;
			kill_late(sweep, run);
			if (!has_ended(run) || !aw_sweep_run_reap(&sweep->options, run))
				continue;
			aw_sweep_run_judge(run, &sweep->first);
			aw_sweep_progress(run, ++done, sweep->count);
			aw_sweep_run_remove(run);
		}
	}
	aw_sweep_progress_end();
	kill_all(sweep->runs, begun);
	return ended_by ? 128 + ended_by : CLI_OK;
}

static int run_sweep(struct sweep *sweep)
{
	int64_t start = aw_now_ns(), took;
	int status = run_first(sweep);

	if (status != CLI_OK)
		return status;
	took = aw_now_ns() - start;
	aw_sweep_run_judge(&sweep->first, &(struct sweep_run){ 0 });
	if (!first_is_good(sweep) || !plan_runs(sweep)) {
		aw_sweep_run_remove(&sweep->first);
		return CLI_FAILED;
	}
	aw_sweep_run_remove(&sweep->first);
	if (!sweep->timeout_ns)
		sweep->timeout_ns = 10 * took > TIMEOUT_MIN * SECOND ? 10 * took
								     : TIMEOUT_MIN * SECOND;
	status = run_all(sweep);
	if (status != CLI_OK)
		return status;
	aw_sweep_table(&sweep->options, sweep->runs, sweep->count, sweep->left_out);
	for (size_t i = 0; i < sweep->count; i++)
		if (sweep->runs[i].outcome == SWEEP_CRASHED ||
		    sweep->runs[i].outcome == SWEEP_HUNG || sweep->runs[i].outcome == SWEEP_LIED)
			return CLI_FAILED;
	return CLI_OK;
}

int aw_cli_sweep(const struct cli_sweep *options)
{
	struct sweep sweep = { .options = *options, .timeout_ns = options->timeout_s * SECOND };
	sigset_t before;
	int status;

	if (!sweep.options.jobs) {
		cpu_set_t set;
		int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

		sweep.options.jobs = count < JOBS_MAX ? (unsigned)count : JOBS_MAX;
	}
	if (!sweep.options.runs_max)
		sweep.options.runs_max = SWEEP_RUNS;
	if (!sweep.options.each_max)
		sweep.options.each_max = SWEEP_EACH;
	sigemptyset(&sweep.signals);
	sigaddset(&sweep.signals, SIGCHLD);
	sigaddset(&sweep.signals, SIGINT);
	sigaddset(&sweep.signals, SIGTERM);
	sigaddset(&sweep.signals, SIGHUP);
	/* Where it is ignored, no child can be waited for. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &sweep.signals, &before);
	status = run_sweep(&sweep);
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(sweep.runs);
	return status;
}
