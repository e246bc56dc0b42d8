// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library that a program needs, whose constructor therefore runs before those of a preloaded one.
#include <stdio.h>
#include <stdlib.h>

#include "each.h"

__attribute__((constructor)) static void use_early(int argc, char **argv)
{
	if (argc == 2) {
		each_use_all(atoi(argv[1]));
		puts("used");
	}
}
