// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // dladdr
#include "check/base/symbol.h"

#include "base/thread_safety.h"
#include "check/base/dwarf.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER; /* libdw's session */

static void lock_for_fork(void) AW_UNCHECKED
{
	pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void) AW_UNCHECKED
{
	pthread_mutex_unlock(&lock);
}

/* fork(2) takes the locks of what was registered last first: those of reports, which call in here, are registered later. */
__attribute__((constructor(101))) static void symbol_begin(void)
{
	pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

static void add_module(uintptr_t address, struct aw_symbol *symbol)
{
	ssize_t len = -1;
	Dl_info info;

	symbol->module[0] = '\0';
	symbol->offset = address;
	if (!dladdr((void *)address, &info) || !info.dli_fname)
		return;
	/* The loader has the program as it was called. */
	if (!strchr(info.dli_fname, '/') || info.dli_fname[0] != '/')
		len = readlink("/proc/self/exe", symbol->module, AW_SYMBOL_FILE_MAX - 1);
	if (len >= 0)
		symbol->module[len] = '\0';
	else
		snprintf(symbol->module, sizeof(symbol->module), "%s", info.dli_fname);
	symbol->offset = address - (uintptr_t)info.dli_fbase;
	if (!symbol->function[0] && info.dli_sname)
		snprintf(symbol->function, sizeof(symbol->function), "%s", info.dli_sname);
}

/* A program of C++ has the function that makes its names readable. */
static void demangle(struct aw_symbol *symbol)
{
	char *(*read_name)(const char *name, char *output, size_t *len, int *status);
	char *name;
	int status;

	if (strncmp(symbol->function, "_Z", 2) != 0)
		return;
	*(void **)&read_name = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	name = read_name ? read_name(symbol->function, NULL, NULL, &status) : NULL;
	if (name)
		snprintf(symbol->function, sizeof(symbol->function), "%s", name);
	free(name);
}

size_t aw_symbol_find(const void *pc, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX])
{
	uintptr_t address = (uintptr_t)pc - 1; /* in the call that returns to pc */
	size_t found;

	pthread_mutex_lock(&lock);
	found = aw_dwarf_find(address, symbols);
	if (!found) {
		memset(&symbols[0], 0, sizeof(symbols[0]));
		found = 1;
	}
	for (size_t i = 0; i < found; i++) {
		add_module(address, &symbols[i]);
		demangle(&symbols[i]);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Takes the last part of a path away. False where there is none but ".." */
static bool go_up(const char *file, size_t *len)
{
	size_t at = *len;

	while (at > 0 && file[at - 1] != '/')
		at--;
	if (*len == 1 && file[0] == '/')
		return true;
	if (at == *len || (*len - at == 2 && !memcmp(file + at, "..", 2)))
		return false;
	*len = at > 1 ? at - 1 : at;
	return true;
}

void aw_symbol_path(const char *directory, const char *path, char file[AW_SYMBOL_FILE_MAX])
{
	char joined[2 * AW_SYMBOL_FILE_MAX];
	const char *at = joined;
	size_t len = 0;

	if (path[0] == '/' || !directory || !*directory)
		snprintf(joined, sizeof(joined), "%s", path);
	else
		snprintf(joined, sizeof(joined), "%s/%s", directory, path);
	if (*at == '/')
		file[len++] = '/';
	while (*at) {
		size_t part = strcspn(at, "/");
		bool is_up = part == 2 && !memcmp(at, "..", 2);
		bool is_named = part > 0 && !(part == 1 && *at == '.');

		if (is_named && !(is_up && go_up(file, &len)) &&
		    len + part + 2 <= AW_SYMBOL_FILE_MAX)
			len += (size_t)snprintf(file + len, AW_SYMBOL_FILE_MAX - len, "%s%.*s",
						len > 0 && file[len - 1] != '/' ? "/" : "",
						(int)part, at);
		at += part + (at[part] == '/');
	}
	file[len] = '\0';
}
