// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts our libraries before the system's and becomes a program. It must change nothing else for the
// program: no fd, no signal, no directory.
#define _GNU_SOURCE // asprintf
#include "cli/launch.h"

#include "base/array.h"
#include "base/slice.h"
#include "cli/cli.h"
#include "net/base/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const log_levels[] = { "error", "warn", "info", "debug" };

bool aw_launch_value(char ***arg, const char *name, const char **value)
{
	size_t len = strlen(name);

	if (strncmp(**arg, name, len) != 0)
		return false;
	if ((**arg)[len] == '=') {
		*value = **arg + len + 1;
		return true;
	}
	if ((**arg)[len])
		return false;
	*value = (*arg)[1] ? *++*arg : NULL;
	return true;
}

static enum launch_option take_log(struct launch *launch, const char *level)
{
	size_t found;

	if (aw_slice_find(aw_slice_of(level), log_levels, ARRAY_LEN(log_levels), &found)) {
		launch->log = level;
		return LAUNCH_TAKEN;
	}
	fprintf(stderr, "%s: --log needs one of: error warn info debug\n", launch->who);
	return LAUNCH_WRONG;
}

static enum launch_option take_mpa(struct launch *launch, const char *list)
{
	char why[AW_POLICY_WHY_MAX] = "needs a list, for example markers=on,crc=off";
	struct aw_policy policy;

	if (!list || !aw_policy_parse(list, &policy, why)) {
		fprintf(stderr, "%s: --mpa: %s\n", launch->who, why);
		return LAUNCH_WRONG;
	}
	launch->mpa = list;
	return LAUNCH_TAKEN;
}

enum launch_option aw_launch_option(struct launch *launch, char ***arg)
{
	const char *value;

	if (aw_launch_value(arg, "--log", &value))
		return take_log(launch, value);
	if (aw_launch_value(arg, "--mpa", &value))
		return take_mpa(launch, value);
	return LAUNCH_OTHER;
}

bool aw_launch_environment(const struct launch *launch, char dir[PATH_MAX])
{
	if (!aw_libdir_find(dir)) {
		fprintf(stderr,
			"%s: " CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s: "
			"build them ('./dev build') or install anywarp again\n",
			launch->who, dir);
		return false;
	}
	if (!aw_libdir_export(dir) || (launch->log && setenv("ANYWARP_LOG", launch->log, 1) != 0) ||
	    (launch->mpa && setenv(AW_POLICY_ENV, launch->mpa, 1) != 0)) {
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", launch->who);
		return false;
	}
	return true;
}

// Writes the path that execvp would run; false when there is none.
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return access(path, F_OK) == 0;
	}
	while (dirs && *dirs) {
		int len = (int)strcspn(dirs, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", len, dirs, name);
		if (access(path, X_OK) == 0)
			return true;
		dirs += len;
		dirs += *dirs == ':';
	}
	return false;
}

bool aw_launch_preload(const char *who, const char *dir, const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *joined;
	bool done;

	if (strpbrk(dir, " :\t\n")) {
		fprintf(stderr,
			"%s: LD_PRELOAD cannot name '%s', for a blank or a colon in it: "
			"install anywarp somewhere else\n",
			who, dir);
		return false;
	}
	if (asprintf(&joined, "%s/%s%s%s", dir, library, old && *old ? ":" : "", old ? old : "") <
	    0)
		joined = NULL;
	done = joined && setenv("LD_PRELOAD", joined, 1) == 0;
	free(joined);
	if (!done)
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return done;
}

// The loader ignores LD_LIBRARY_PATH in a program that gains privileges: ld.so(8).
static void warn_if_privileged(const char *who, const char *name)
{
	char path[PATH_MAX];
	struct stat file;

	if (!find_program(name, path) || stat(path, &file) != 0)
		return;
	if ((file.st_mode & S_ISUID && file.st_uid != geteuid()) ||
	    (file.st_mode & S_ISGID && file.st_gid != getegid()))
		fprintf(stderr,
			"%s: note: %s is set-user-ID or set-group-ID, so the loader will "
			"ignore anywarp's libraries: run a copy of it without that bit\n",
			who, path);
}

static int explain_exec_error(const char *who, const char *name, int error)
{
	char path[PATH_MAX];
	bool found = find_program(name, path);

	/*
	 * execvp returns EACCES, too, when a directory of PATH may not be searched: then it has
	 * found no program.
	 */
	if (error == EACCES && !found && !strchr(name, '/'))
		error = ENOENT;
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		if (found)
			fprintf(stderr,
				"%s: %s: the interpreter or loader it names does not "
				"exist: check its first line, or build it for this machine\n",
				who, path);
		else
			fprintf(stderr,
				"%s: no program '%s': check the spelling, give its path, "
				"or install the package that has it\n",
				who, name);
		return found ? CLI_NOT_EXECUTABLE : CLI_NOT_FOUND;
	case EACCES:
		fprintf(stderr,
			"%s: %s may not be executed: make it executable (chmod +x), and "
			"check its directory and mount options\n",
			who, name);
		return CLI_NOT_EXECUTABLE;
	default:
		fprintf(stderr, "%s: %s: %s\n", who, name, strerror(error));
		return CLI_NOT_EXECUTABLE;
	}
}

int aw_launch_exec(const struct launch *launch, char **command)
{
	warn_if_privileged(launch->who, command[0]);
	execvp(command[0], command);
	return explain_exec_error(launch->who, command[0], errno);
}
