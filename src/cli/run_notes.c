// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The loader takes a library of LD_PRELOAD first, then one of the program's RPATH, then one of LD_LIBRARY_PATH. The program is judged
// by its file: what it becomes later, 'anywarp stat' tells.
#define _GNU_SOURCE // strchrnul
#include "cli/run_notes.h"

#include "cli/cli.h"
#include "cli/elf.h"
#include "cli/launch.h"
#include "cli/preload.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX 65536
#define NOTE "%s: note: "
#define PATH_ENV "LD_LIBRARY_PATH"

static void note_rpath(const char *who, const char *program, const char *list)
{
	static const char *const names[] = { CLI_VERBS_LIB, CLI_RDMACM_LIB };
	char file[PATH_MAX];

	for (const char *end = list; *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		for (int i = 0; i < 2; i++) {
			if (snprintf(file, sizeof(file), "%.*s/%s", (int)(end - list), list,
				     names[i]) >= PATH_MAX ||
			    access(file, R_OK) != 0)
				continue;
			fprintf(stderr,
				NOTE
				"%s has an RPATH, by which the loader takes %s before anywarp's: "
				"put anywarp's in LD_PRELOAD\n",
				who, program, file);
			return;
		}
	}
}

static void note_script(const char *who, const char *program, int fd)
{
	char text[SCRIPT_MAX];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	// The script assigns the variable, and never reads it.
	if (!strncmp(text, "#!", 2) &&
	    (strstr(text, PATH_ENV "=") || strstr(text, "unset " PATH_ENV)) &&
	    !strstr(text, "$" PATH_ENV) && !strstr(text, "${" PATH_ENV))
		fprintf(stderr,
			NOTE "%s is a script that sets " PATH_ENV
			     " anew, without anywarp's directory: what it starts will not run over "
			     "anywarp\n",
			who, program);
}

void aw_run_notes(const char *who, const char *program)
{
	char path[PATH_MAX], list[PATH_MAX];
	const char *where;
	struct elf elf;
	int fd;

	if (aw_preload_find(path, &where))
		fprintf(stderr,
			NOTE
			"%s names %s, which the loader takes before anywarp's: the program will "
			"not run over anywarp\n",
			who, where, path);

	// A program that was not found, or is no file, is the exec's to refuse.
	fd = aw_launch_open(program, path);
	if (fd < 0)
		return;
	if (!aw_elf_read(fd, &elf))
		note_script(who, path, fd);
	else if (!aw_elf_has_interpreter(&elf))
		fprintf(stderr,
			NOTE "%s is linked statically, and so loads no library of anywarp's\n", who,
			path);
	else if (aw_elf_rpath(&elf, list))
		note_rpath(who, path, list);
	close(fd);
}
