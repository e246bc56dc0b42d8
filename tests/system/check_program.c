// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program for test_cli_check.py. Each argument is a rule to break, or one of those below.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((weak)) void check_break(const char *name, int times);

__attribute__((noinline)) static void break_rule(const char *name, int times)
{
	if (check_break)
		check_break(name, times); // the call that is reported
	__asm__ volatile("" ::: "memory");
}

static void break_in_child(const char *name)
{
	pid_t child = fork();

	if (!child) {
		break_rule(name, 1);
		_exit(0);
	}
	printf("child %d\n", (int)child);
	fflush(stdout);
	waitpid(child, NULL, 0);
}

static void wait_for_signal(void)
{
	puts("READY");
	fflush(stdout);
	for (;;)
		pause();
}

static void print_variable(const char *name)
{
	puts(getenv(name) ? getenv(name) : "(none)");
	fflush(stdout);
}

static void act(const char *word)
{
	const char *value = strchr(word, '=');

	if (!strcmp(word, "wait"))
		wait_for_signal();
	else if (!strncmp(word, "exit=", 5))
		exit(atoi(value + 1));
	else if (!strncmp(word, "raise=", 6))
		raise(atoi(value + 1));
	else if (!strncmp(word, "child=", 6))
		break_in_child(value + 1);
	else if (!strncmp(word, "print=", 6))
		print_variable(value + 1);
	else if (!strncmp(word, "thrice=", 7))
		break_rule(value + 1, 3);
	else
		break_rule(word, 1);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		act(argv[i]);
	return 0;
}
