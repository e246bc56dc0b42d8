// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // pipe2
#include "cli/check_start.h"

#include "base/array.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };

// The command's own signals, of which the program gets what there was before.
struct signals {
	sigset_t taken, before;
	struct sigaction child_before;
	pid_t command;
};

static void signals_take(struct signals *signals)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };

	signals->command = getpid();
	sigemptyset(&signals->taken);
	sigaddset(&signals->taken, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaddset(&signals->taken, passed_on[i]);
	sigprocmask(SIG_BLOCK, &signals->taken, &signals->before);
	// A parent that ignores it would leave no status to wait for.
	sigaction(SIGCHLD, &standard, &signals->child_before);
}

static void signals_give_back(const struct signals *signals)
{
	sigaction(SIGCHLD, &signals->child_before, NULL);
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

static int wait_for(pid_t program, const struct signals *signals)
{
	siginfo_t info;
	int status;

	for (;;) {
		int number = sigwaitinfo(&signals->taken, &info);

		if (number > 0 && number != SIGCHLD && info.si_code <= 0)
			kill(program, number);
		if (number == SIGCHLD && waitpid(program, &status, WNOHANG) == program)
			return status;
	}
}

void aw_check_start(const struct launch *launch, char **command, struct check_end *end)
{
	struct signals signals;
	int told[2] = { -1, -1 };
	pid_t program = -1;

	*end = (struct check_end){ .was_started = false, .status = CLI_RUN_FAILED };
	signals_take(&signals);
	if (pipe2(told, O_CLOEXEC) == 0)
		program = fork();
	if (program == 0) {
		int status; // of an exec that failed; one that succeeds closes the pipe

		// The program ends with the command, as if it were the same process.
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != signals.command)
			_exit(CLI_RUN_FAILED);
		signals_give_back(&signals);
		status = aw_launch_exec(launch, command);
		(void)!write(told[1], &status, sizeof(status));
		_exit(status);
	}
	if (program < 0) {
		fprintf(stderr, "%s: cannot start a process: %s\n", launch->who, strerror(errno));
	} else {
		close(told[1]);
		told[1] = -1;
		end->was_started = read(told[0], &end->status, sizeof(end->status)) !=
				   sizeof(end->status);
		if (end->was_started)
			end->status = wait_for(program, &signals);
		else
			waitpid(program, NULL, 0);
	}
	for (int i = 0; i < 2; i++)
		if (told[i] >= 0)
			close(told[i]);
	signals_give_back(&signals);
}
