// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // asprintf
#include "cli/msan.h"

#include "cli/elf.h"
#include "cli/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MSAN_ENV "MSAN_OPTIONS"

/*
 * intercept_tls_get_addr: the runtime of clang 14 crashes when the checker loads libdw into a program with large thread-local
 * variables.
 */
#define OPTIONS "poison_in_malloc=0:poison_in_free=0:intercept_send=0:intercept_tls_get_addr=0"

bool aw_cli_msan_is_in(const char *program)
{
	char path[PATH_MAX];
	bool is_in = false;
	struct elf elf;
	int fd = aw_launch_open(program, path);

	if (fd < 0)
		return false;
	if (aw_elf_read(fd, &elf))
		is_in = aw_elf_has_name(&elf, "__msan_init");
	close(fd);
	return is_in;
}

bool aw_cli_msan_export(const char *who)
{
	const char *old = getenv(MSAN_ENV);
	char *options;
	bool done;

	if (asprintf(&options, OPTIONS "%s%s", old && *old ? ":" : "", old ? old : "") < 0)
		options = NULL;
	done = options && setenv(MSAN_ENV, options, 1) == 0;
	free(options);
	if (!done)
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return done;
}
