// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that crashes in a run of 'anywarp check --sweep': where it did so is written to standard error, and to the file "crash"
// of the run's directory, which the table quotes. The signal then does what it does without the library.
//
// A child process finds the names, since that takes locks and memory that the crash may have left in any state. One that does not
// end is ended by its alarm.
#include "base/array.h"
#include "check/base/inside.h"
#include "check/report/render.h"
#include "check/report/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR_ENV "ANYWARP_SWEEP_DIR"
#define TELL_S 5

static char path[PATH_MAX], directory[PATH_MAX];

static void frame_write(int fd, const struct aw_symbol *frame)
{
	if (frame->file[0])
		dprintf(fd, "%s %s:%u\n", frame->function, aw_render_path(directory, frame->file),
			frame->line);
	else
		dprintf(fd, "%s (%s+0x%lx)\n", frame->function[0] ? frame->function : "?",
			aw_trace_base(frame->module), (unsigned long)frame->offset);
}

/* In the child. */
_Noreturn static void tell(int number, const struct aw_stack *stack)
{
	static struct aw_trace trace;
	const struct aw_symbol *origin;
	sigset_t none;
	int fd;

	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(TELL_S);
	aw_trace_name(stack, &trace);
	origin = aw_trace_origin(&trace);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0 && origin)
		frame_write(fd, origin);
	dprintf(STDERR_FILENO, "anywarp check: the program crashes with SIG%s:\n",
		sigabbrev_np(number));
	for (unsigned i = 0; i < trace.frames; i++) {
		dprintf(STDERR_FILENO, "    #%u ", i);
		frame_write(STDERR_FILENO, &trace.frame[i]);
	}
	_exit(0);
}

/*
 * The stack begins with the frame by which the kernel returns from a handler. The next address is that of the instruction that the
 * signal interrupted, and no return address as the others are.
 */
static void stack_correct(struct aw_stack *stack)
{
	if (stack->frames < 2)
		return;
	stack->frames--;
	for (unsigned i = 0; i < stack->frames; i++)
		stack->pc[i] = stack->pc[i + 1];
	stack->pc[0] = (char *)stack->pc[0] + 1;
}

static void crashed(int number)
{
	struct aw_stack stack;
	pid_t teller;

	aw_inside_enter();
	aw_stack_take(&stack);
	stack_correct(&stack);
	teller = _Fork();
	if (teller == 0)
		tell(number, &stack);
	while (teller > 0 && waitpid(teller, NULL, 0) < 0 && errno == EINTR)
		;
	/* It is pending until the handler returns, and then does what it usually does. */
	raise(number);
}

/* A handler of the program's own takes its place. */
__attribute__((constructor)) static void crashes_watch(void)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
	const struct sigaction action = { .sa_handler = crashed, .sa_flags = (int)SA_RESETHAND };
	const char *dir = secure_getenv(DIR_ENV);

	if (!dir || !getcwd(directory, sizeof(directory)))
		return;
	snprintf(path, sizeof(path), "%s/crash", dir);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &action, NULL);
}
