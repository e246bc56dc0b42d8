// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // asprintf
#include "cli/runtime.h"

#include "base/array.h"
#include "base/runtime.h"
#include "cli/elf.h"
#include "cli/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD_ENV "LD_PRELOAD"
#define ASAN_ENV "ASAN_OPTIONS"
#define ASAN_ORDER "verify_asan_link_order"
#define BETWEEN ": \t\n" // the loader's separators

/*
 * How the names of gcc's and clang's runtimes begin that have wrappers of libc's functions. That of UndefinedBehaviorSanitizer has
 * none, and stays where it is: AddressSanitizer's, in the same program, has to be the first.
 */
static const char *const beginnings[] = {
	"libasan.so",	    "libtsan.so",	  "liblsan.so",	      "libhwasan.so",
	"libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.tsan", "libclang_rt.lsan",
};

static bool is_runtime(const char *library, size_t len)
{
	const char *name = memrchr(library, '/', len);

	name = name ? name + 1 : library;
	len -= (size_t)(name - library);
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (len >= strlen(beginnings[i]) &&
		    strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

// Writes the runtime that the program's file needs. False: it needs none, or is a script, or nothing that can be executed.
static bool find_needed(const char *program, char runtime[PATH_MAX])
{
	char path[PATH_MAX];
	bool is_found = false;
	struct elf elf;
	int fd = aw_launch_open(program, path);

	if (fd < 0)
		return false;
	if (aw_elf_read(fd, &elf))
		for (size_t i = 0; !is_found && aw_elf_needed(&elf, i, runtime); i++)
			is_found = is_runtime(runtime, strlen(runtime)) &&
				   !strpbrk(runtime, BETWEEN);
	close(fd);
	return is_found;
}

// Appends the libraries of the list that are runtimes, or those that are none. Returns the end.
static char *add_libraries(char *at, const char *start, const char *list, bool runtimes)
{
	while (*list) {
		size_t len = strcspn(list, BETWEEN);

		if (len && is_runtime(list, len) == runtimes)
			at += sprintf(at, "%s%.*s", at > start ? ":" : "", (int)len, list);
		list += len + strspn(list + len, BETWEEN);
	}
	return at;
}

// The list with its runtimes first; NULL when out of memory.
static char *sort_libraries(const char *list)
{
	char *sorted = malloc(strlen(list) + 1), *at = sorted;

	if (!sorted)
		return NULL;
	*at = '\0';
	at = add_libraries(at, sorted, list, true);
	(void)add_libraries(at, sorted, list, false);
	return sorted;
}

static bool set_preload(const char *program)
{
	char needed[PATH_MAX], *sorted, *with_needed;
	bool done;

	sorted = sort_libraries(getenv(PRELOAD_ENV));
	if (!sorted)
		return false;
	// A runtime that the user preloads is for all programs that are started.
	if (is_runtime(sorted, strcspn(sorted, ":")) || !find_needed(program, needed)) {
		done = unsetenv(AW_RUNTIME_ENV) == 0 && setenv(PRELOAD_ENV, sorted, 1) == 0;
		free(sorted);
		return done;
	}
	if (asprintf(&with_needed, "%s:%s", needed, sorted) < 0)
		with_needed = NULL;
	done = with_needed && setenv(PRELOAD_ENV, with_needed, 1) == 0 &&
	       setenv(AW_RUNTIME_ENV, needed, 1) == 0;
	free(with_needed);
	free(sorted);
	return done;
}

// The user's own word on the order stays.
static bool allow_order(void)
{
	const char *old = getenv(ASAN_ENV);
	char *options;
	bool done;

	if (old && strstr(old, ASAN_ORDER))
		return true;
	if (asprintf(&options, "%s%s" ASAN_ORDER "=0", old ? old : "", old && *old ? ":" : "") < 0)
		return false;
	done = setenv(ASAN_ENV, options, 1) == 0;
	free(options);
	return done;
}

bool aw_cli_runtime_export(const char *who, const char *program)
{
	if (!getenv(PRELOAD_ENV) || (set_preload(program) && allow_order()))
		return true;
	fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return false;
}
