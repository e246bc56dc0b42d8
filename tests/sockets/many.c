// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Becomes a shell that prints how many arguments it has: 5000, and one more for the shell's $0. A child of vfork does so first.
#include <sys/wait.h>
#include <unistd.h>

#define TEN(word) word, word, word, word, word, word, word, word, word, word
#define THOUSAND TEN(TEN(TEN("x")))

static void become_shell(void)
{
	execl("/bin/sh", "sh", "-c", "echo $#", "x", THOUSAND, THOUSAND, THOUSAND, THOUSAND,
	      THOUSAND, (char *)NULL);
	_exit(1);
}

int main(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0)
		become_shell();
	if (waitpid(child, &status, 0) != child || status)
		return 2;
	become_shell();
	return 1;
}
