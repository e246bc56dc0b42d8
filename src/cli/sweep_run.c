// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // unshare
#include "cli/sweep_run.h"

#include "base/array.h"
#include "base/clock.h"
#include "check/faults/count.h"
#include "check/faults/plan.h"
#include "cli/cli.h"
#include "cli/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORTS_ENV "ANYWARP_CHECK_REPORTS"
#define DIR_ENV "ANYWARP_SWEEP_DIR"
#define FILE_MAX 96

enum {
	COUNTS,
	REPORTS,
	OUTPUT,
	FILES, // those that are made before the run
	CRASH = FILES
};
static const char *const files[] = { "counts", "reports", "output", "crash" };

static void file_of(const struct sweep_run *run, int file, char path[FILE_MAX])
{
	snprintf(path, FILE_MAX, "%s/%s", run->dir, files[file]);
}

void aw_sweep_place_write(const struct sweep_place *place, char *text, size_t size)
{
	if (place->nth)
		snprintf(text, size, "%s:nth=%" PRIu64, aw_fault_name(place->name), place->nth);
	else
		snprintf(text, size, "no fault");
}

// Gives the process a network of its own with loopback, where it may have one: in a user namespace, too, where the user may not
// make one of networks alone. The user keeps his number.
static void own_network(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	char map[64];
	int fd;

	snprintf(map, sizeof(map), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
	if (unshare(CLONE_NEWNET) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
			return;
		fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		(void)!write(fd, map, strlen(map));
		close(fd);
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)ioctl(fd, SIOCSIFFLAGS, &loopback);
	close(fd);
}

static void write_to_output(const struct sweep_run *run)
{
	char path[FILE_MAX];
	int fd, null = open("/dev/null", O_RDONLY);

	file_of(run, OUTPUT, path);
	fd = open(path, O_WRONLY | O_APPEND);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
	if (null > STDERR_FILENO)
		close(null);
	if (fd > STDERR_FILENO)
		close(fd);
}

// In the child. The signals of the sweep are blocked in its parent.
_Noreturn static void become(const struct sweep_run *run, char *const *command, bool is_alone)
{
	char place[64], path[FILE_MAX];
	sigset_t none;

	setpgid(0, 0);
	write_to_output(run);
	setenv(DIR_ENV, run->dir, 1);
	if (run->is_verify) {
		unsetenv(AW_FAULTS_ENV);
		unsetenv(AW_FAULTS_COUNT_ENV);
		unsetenv(REPORTS_ENV);
	} else {
		if (run->place.nth) {
			aw_sweep_place_write(&run->place, place, sizeof(place));
			setenv(AW_FAULTS_ENV, place, 1);
		} else {
			unsetenv(AW_FAULTS_ENV);
		}
		file_of(run, COUNTS, path);
		setenv(AW_FAULTS_COUNT_ENV, path, 1);
		file_of(run, REPORTS, path);
		setenv(REPORTS_ENV, path, 1);
	}
	if (!is_alone)
		own_network();
	if (!run->is_verify && !aw_cli_runtime_export("anywarp check", command[0]))
		_exit(CLI_RUN_FAILED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(command[0], command);
	fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static bool start(const struct cli_sweep *sweep, struct sweep_run *run, char *const *command)
{
	run->pid = fork();
	if (run->pid == 0)
		become(run, command, run->is_verify || sweep->jobs == 1);
	if (run->pid < 0) {
		fprintf(stderr, "%s: cannot start a run: %s\n", sweep->who, strerror(errno));
		run->pid = 0;
		return false;
	}
	setpgid(run->pid, run->pid);
	run->start_ns = aw_now_ns();
	return true;
}

bool aw_sweep_run_start(const struct cli_sweep *sweep, struct sweep_run *run)
{
	const char *tmp = getenv("TMPDIR");
	char path[FILE_MAX];
	bool made;

	/* A long name is not worth a longer array. */
	if (!tmp || strlen(tmp) > sizeof(run->dir) - sizeof("/anywarp-sweep.XXXXXX"))
		tmp = "/tmp";
	snprintf(run->dir, sizeof(run->dir), "%s/anywarp-sweep.XXXXXX", tmp);
	made = mkdtemp(run->dir) != NULL;
	for (int i = 0; made && i < FILES; i++) {
		off_t size = i == COUNTS ? (off_t)sizeof(struct aw_fault_counts) : 0;
		int fd;

		file_of(run, i, path);
		fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		made = fd >= 0 && ftruncate(fd, size) == 0;
		if (fd >= 0)
			close(fd);
	}
	if (!made)
		fprintf(stderr, "%s: cannot make the files of a run in %s: %s\n", sweep->who, tmp,
			strerror(errno));
	return made && start(sweep, run, sweep->command);
}

void aw_sweep_run_kill(struct sweep_run *run)
{
	if (run->pid > 0)
		kill(-run->pid, SIGKILL);
}

bool aw_sweep_run_reap(const struct cli_sweep *sweep, struct sweep_run *run)
{
	char *const verify[] = { "sh", "-c", (char *)(uintptr_t)sweep->verify, NULL };
	bool succeeds;

	/* The processes that the command has left behind end while its number cannot be another's. */
	aw_sweep_run_kill(run);
	waitpid(run->pid, run->is_verify ? &run->verify_status : &run->status, 0);
	run->pid = 0;
	succeeds = !run->is_late && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;
	if (run->is_verify || !sweep->verify || !succeeds)
		return true;
	run->is_verify = true;
	return !start(sweep, run, verify);
}

static struct aw_fault_counts *counts_of(const struct sweep_run *run)
{
	char path[FILE_MAX];

	file_of(run, COUNTS, path);
	return aw_fault_counts_map(path);
}

bool aw_sweep_run_calls(const struct sweep_run *run, uint64_t *calls)
{
	struct aw_fault_counts *counts = counts_of(run);

	for (int i = 0; counts && i < AW_FAULT_NAMES_MAX; i++)
		calls[i] = counts->calls[i];
	return counts != NULL;
}

// The signal that ended the command, or a command that a shell has run.
static int signal_of(int status)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };

	if (WIFSIGNALED(status))
		return WTERMSIG(status);
	for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
		if (WEXITSTATUS(status) == 128 + crashes[i])
			return crashes[i];
	return 0;
}

static enum sweep_outcome outcome_of(const struct sweep_run *run, const struct sweep_run *first,
				     bool is_injected)
{
	bool succeeds = WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;
	// An object that stays, since the plan has its destruction fail, is no leak of the program's.
	bool lets_destruction_fail = run->place.nth &&
				     aw_fault_name_errno(run->place.name) == EBUSY;

	if (run->is_late)
		return SWEEP_HUNG;
	if (signal_of(run->status))
		return SWEEP_CRASHED;
	if (succeeds && run->is_verify && run->verify_status != 0)
		return SWEEP_LIED;
	if (run->reports - run->leaks > first->reports - first->leaks)
		return SWEEP_REPORTED;
	if (run->leaks > first->leaks && !lets_destruction_fail)
		return SWEEP_LEAKED;
	if (run->place.nth && !is_injected)
		return SWEEP_MISSED;
	return succeeds ? SWEEP_SURVIVED : SWEEP_FAILED;
}

void aw_sweep_run_judge(struct sweep_run *run, const struct sweep_run *first)
{
	struct aw_fault_counts *counts = counts_of(run);
	char path[FILE_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;

	// Of each report the file has a line "K <rule>".
	file_of(run, REPORTS, path);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0) {
		run->leaks += !strcmp(line, "K leak\n");
		run->reports += !strncmp(line, "K ", 2);
	}
	if (file)
		fclose(file);
	free(line);

	// The file has a line for each crash; the first is told.
	file_of(run, CRASH, path);
	file = fopen(path, "re");
	if (file && fgets(run->crash, sizeof(run->crash), file))
		run->crash[strcspn(run->crash, "\n")] = '\0';
	if (file)
		fclose(file);

	run->outcome = outcome_of(run, first, counts && counts->injected > 0);
}

void aw_sweep_run_show(const struct sweep_run *run, unsigned lines)
{
	char path[FILE_MAX], line[512];
	FILE *output;

	file_of(run, OUTPUT, path);
	output = fopen(path, "re");
	while (output && lines-- && fgets(line, sizeof(line), output))
		fprintf(stderr, "  %s", line);
	if (output)
		fclose(output);
}

void aw_sweep_run_remove(const struct sweep_run *run)
{
	char *const command[] = { "rm", "-rf", "--", (char *)(uintptr_t)run->dir, NULL };
	pid_t pid = fork();

	/* The command may have put files there. */
	if (pid == 0) {
		unsetenv("LD_PRELOAD");
		execvp(command[0], command);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void aw_sweep_run_tell(const struct sweep_run *run, char *text, size_t size)
{
	int number = signal_of(run->status);

	switch (run->outcome) {
	case SWEEP_CRASHED:
		snprintf(text, size, "crashed with SIG%s%s%s",
			 sigabbrev_np(number) ? sigabbrev_np(number) : "?",
			 run->crash[0] ? " at " : "", run->crash);
		return;
	case SWEEP_HUNG:
		snprintf(text, size, "hung");
		return;
	case SWEEP_LIED:
		snprintf(text, size, "ended with success, but --verify fails");
		return;
	case SWEEP_REPORTED:
		snprintf(text, size, "ended with status %d and reports of the checker",
			 WEXITSTATUS(run->status));
		return;
	case SWEEP_LEAKED:
		snprintf(text, size, "ended with status %d and leaked", WEXITSTATUS(run->status));
		return;
	case SWEEP_FAILED:
		snprintf(text, size, "ended with status %d", WEXITSTATUS(run->status));
		return;
	case SWEEP_SURVIVED:
		snprintf(text, size, "ended with success");
		return;
	case SWEEP_MISSED:
		snprintf(text, size, "did not make this call");
		return;
	case SWEEP_OUTCOMES:
		break;
	}
}
