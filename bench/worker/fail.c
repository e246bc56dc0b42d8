// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/fail.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_MAX 512

static int told = -1;
static char late[TEXT_MAX];

static void end_with(const char *text) __attribute__((noreturn));

void fail(const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	end_with(text);
}

void fail_errno(const char *format, ...)
{
	const char *cause = strerror(errno);
	char text[TEXT_MAX];
	va_list args;
	int used;

	va_start(args, format);
	used = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, ": %s", cause);
	end_with(text);
}

void fail_tell(int control)
{
	told = control;
}

static void on_alarm(int signum)
{
	(void)signum;
	if (write(STDERR_FILENO, late, strlen(late)) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

void fail_after(unsigned int seconds, const char *text)
{
	struct sigaction action = { .sa_handler = on_alarm };

	alarm(0);
	snprintf(late, sizeof(late), "%s: %s\n", program_invocation_short_name, text);
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
}

static void end_with(const char *text)
{
	char line[TEXT_MAX + 16];
	int length = snprintf(line, sizeof(line), "error %s\n", text);

	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
	if (told >= 0)
		send(told, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* Not exit(): other threads may be at work on what its handlers take down. */
	_exit(EXIT_TROUBLE);
}
