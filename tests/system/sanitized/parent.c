// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program, to be compiled with a sanitizer, that starts one which is not, and becomes itself again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1) {
		puts("again");
		return 0;
	}
	if (system("cat /proc/self/maps; echo LD_PRELOAD=$LD_PRELOAD") != 0)
		return 1;
	fflush(stdout);
	execl(argv[0], argv[0], "again", (char *)NULL);
	return 1;
}
