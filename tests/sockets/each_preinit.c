// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// each_preinit PORT: uses each wrapper before any constructor runs, and then becomes another such program, which goes on with a
// connection that it inherits: each_preinit PORT FD.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "each.h"

/* libc has no environment yet, and the argument is what a program has instead. */
static char **environment;

static void become_heir(char **argv)
{
	char fd[16];
	char *const heir[] = { argv[0], argv[1], fd, NULL };

	snprintf(fd, sizeof(fd), "%d", each_inheritance(atoi(argv[1])));
	execve("/proc/self/exe", heir, environment);
	_exit(5);
}

static void use_early(int argc, char **argv, char **env)
{
	environment = env;
	if (argc == 2) {
		each_use_all(atoi(argv[1]));
		become_heir(argv);
	}
	if (argc == 3 && !each_is_alive(atoi(argv[2])))
		_exit(6);
}

typedef void early_fn(int argc, char **argv, char **env);
__attribute__((section(".preinit_array"), used)) static early_fn *const before = use_early;

int main(int argc, char **argv)
{
	(void)argv;
	puts(argc == 3 ? "used and inherited" : "no use");
	return 0;
}
