// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// inject_faults memory|fd|system [first count [beside]]: fails each call of a kind in turn, every one in a process
// of its own: once from its very beginning, once beside a connection that must not be harmed. Each
// time: an errno and no hang; the same again without a fault succeeds; no fd, no memory is lost.
#include "inject.h"
#include "scene.h"

#include "net/base/bounds.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	CALLS_MAX = 2000, /* far more than a scene makes: an endless loop otherwise */
	HANG_S = 60,
	FAULTY_STARTUP_MS =
		1000, /* what no fault has met may take as long as a busy machine needs */
	SETTLE_MS = 5000,
	QUIET_MS = 500,
};

static const char *const kind_names[INJECT_KINDS] = { "memory", "fd", "system" };

struct fault {
	enum inject_kind kind;
	uint32_t first, count; /* calls */
	bool beside; /* another connection, which stays */
};

/* What a process tells its parent. */
struct report {
	bool done, whole; /* whole: the scene came to its end in spite of the fault */
	char step[64];
	int err;
	int64_t live, live_due; /* allocations at the end; without a fault; -1: not known yet */
	unsigned int fds, fds_due; /* likewise */
	char wrong[160];
};

static struct report *report;

static void wrong(const char *what, const struct scene *s)
{
	if (!report->wrong[0])
		snprintf(report->wrong, sizeof(report->wrong), "%s: %s: %s", what,
			 s && s->step ? s->step : "", s ? strerror(s->err) : "");
}

static unsigned int fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static bool live_through(struct scene *s)
{
	bool good = scene_open(s) && scene_talk(s) && scene_part(s);

	scene_close(s);
	return good && !s->step;
}

static void faulty_life(const struct fault *fault)
{
	struct scene s;

	inject_arm(fault->kind, fault->first, fault->count);
	report->whole = live_through(&s);
	inject_disarm();
	snprintf(report->step, sizeof(report->step), "%s", s.step ? s.step : "");
	report->err = s.err;
	if (s.stuck)
		wrong("hangs", &s);
	else if (!report->whole && s.err == 0)
		wrong("fails without an errno", &s);
	else if (!report->whole && atomic_load(&inject->failures) == 0)
		wrong("fails without a fault", &s);
}

static void clean_life(void)
{
	struct scene s;

	if (!live_through(&s))
		wrong("no good after", &s);
}

/* What ends by itself, on the progress thread, takes its time. */
static void settle(void)
{
	for (int quiet = 0, ms = 0; ms < SETTLE_MS && quiet < QUIET_MS; ms += 10) {
		int64_t live = inject->live;
		unsigned int fds = fds_open();

		if (live <= report->live_due && fds <= report->fds_due)
			break;
		usleep(10000);
		quiet = report->live_due < 0 && live == inject->live ? quiet + 10 : 0;
	}
	report->live = inject->live;
	report->fds = fds_open();
}

/* One process: perhaps a connection that stays, a scene with a fault, one without. */
static void child(const struct fault *fault)
{
	struct scene survivor;

	alarm(limit_s(HANG_S));
	aw_bounds.linger_ms = 200;
	if (fault->beside && !(scene_open(&survivor) && scene_talk(&survivor)))
		wrong("no survivor", &survivor);
	aw_bounds.startup_ms = FAULTY_STARTUP_MS;
	faulty_life(fault);
	aw_bounds.startup_ms = AW_CONN_STARTUP_MS;
	if (fault->beside && !scene_talk(&survivor))
		wrong("the survivor is harmed", &survivor);
	clean_life();
	if (fault->beside && !(scene_talk(&survivor) && scene_part(&survivor)))
		wrong("the survivor is harmed later", &survivor);
	if (fault->beside)
		scene_close(&survivor);
	settle();
	report->done = true;
	exit(0);
}

/* Some of what is set up once stays; but no more than without a fault. */
static void check_kept(void)
{
	if (report->live_due >= 0 && report->live > report->live_due)
		snprintf(report->wrong, sizeof(report->wrong), "%lld allocations lost, ",
			 (long long)(report->live - report->live_due));
	if (report->live_due >= 0 && report->fds > report->fds_due)
		snprintf(report->wrong, sizeof(report->wrong), "%u fds lost, ",
			 report->fds - report->fds_due);
}

/* without: a run without a fault, or NULL for that one itself. */
static bool run_child(const struct fault *fault, const struct report *without)
{
	int status = 0;
	pid_t pid;

	*report = (struct report){
		.live_due = without ? without->live : -1,
		.fds_due = without ? without->fds : 0,
	};
	inject->live = 0;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(fault);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (!report->done)
		snprintf(report->wrong, sizeof(report->wrong), "%s",
			 WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "dies");
	else if (status != 0)
		snprintf(report->wrong, sizeof(report->wrong), "exits with %d",
			 WEXITSTATUS(status));
	else
		check_kept();
	return !report->wrong[0];
}

static bool told(const struct fault *fault)
{
	bool good = !report->wrong[0];

	if (!good || getenv("FAULTS_VERBOSE"))
		printf("%s call %u to %u%s: %s%s%s %s\n", kind_names[fault->kind], fault->first,
		       fault->first + fault->count - 1, fault->beside ? " beside another" : "",
		       good ? "ok " : "WRONG ", report->wrong,
		       report->whole ? "nothing failed" : report->step,
		       report->whole ? "" : strerror(report->err));
	return good;
}

/* From the first call on until one is not reached any more. Failures. */
static unsigned int run_all(struct fault *fault)
{
	const struct fault none = { .kind = fault->kind, .beside = fault->beside };
	unsigned int failures = !run_child(&none, NULL) && !told(&none);
	const struct report without = *report;

	while (++fault->first < CALLS_MAX) {
		run_child(fault, &without);
		failures += !told(fault);
		if (report->done && inject->failures == 0)
			return failures;
	}
	return failures + 1;
}

static unsigned int run_kind(enum inject_kind kind)
{
	static const uint32_t counts[] = { 1, 4 };
	unsigned int failures = 0;

	for (unsigned int i = 0; i < 4; i++) {
		struct fault fault = { .kind = kind, .count = counts[i / 2], .beside = i & 1 };

		failures += run_all(&fault);
		printf("%s: %u in a row at each of %u calls%s: failures %u\n", kind_names[kind],
		       fault.count, fault.first - 1, fault.beside ? ", beside a connection" : "",
		       failures);
	}
	printf("%s: %u sites\n", kind_names[kind], inject_sites());
	return failures + inject_untried();
}

/* One fault alone, to look at. */
static int run_one(struct fault fault)
{
	const struct fault none = { .kind = fault.kind, .beside = fault.beside };
	struct report without;

	run_child(&none, NULL);
	without = *report;
	setenv("FAULTS_VERBOSE", "1", 1);
	run_child(&fault, &without);
	return !told(&fault);
}

int main(int argc, char **argv)
{
	enum inject_kind kind = INJECT_MEMORY;

	inject_init();
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	while (argc > 1 && kind < INJECT_KINDS && strcmp(argv[1], kind_names[kind]) != 0)
		kind++;
	if (argc < 2 || kind == INJECT_KINDS || report == MAP_FAILED)
		return fputs("usage: inject_faults memory|fd|system [first count [beside]]\n",
			     stderr),
		       2;
	if (argc < 4)
		return run_kind(kind) != 0;
	return run_one((struct fault){ .kind = kind,
				       .first = (uint32_t)strtoul(argv[2], NULL, 10),
				       .count = (uint32_t)strtoul(argv[3], NULL, 10),
				       .beside = argc > 4 });
}
