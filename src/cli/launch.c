// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts our libraries before the system's and becomes a program. It must change nothing else for the
// program: no fd, no signal, no directory.
#define _GNU_SOURCE // asprintf, strchrnul
#include "cli/launch.h"

#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/runtime.h"
#include "cli/tls_options.h"
#include "net/base/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool has_preloaded; // LD_PRELOAD has a library of ours

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

enum launch_option aw_launch_setting(const char *who, const char *option, enum aw_setting setting,
				     const char *word)
{
	unsigned long value;

	if (aw_setting_parse(setting, word, &value) != AW_SETTING_RIGHT) {
		fprintf(stderr, "%s: %s needs one of: %s\n", who, option,
			aw_setting_words(setting));
		return LAUNCH_WRONG;
	}
	if (setenv(aw_setting_name(setting), word, 1) != 0) {
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
		return LAUNCH_WRONG;
	}
	return LAUNCH_TAKEN;
}

enum launch_option aw_launch_option(struct launch *launch, char ***arg)
{
	char why[AW_POLICY_WHY_MAX] = "needs a list, for example markers=on,crc=off";
	struct aw_policy policy;
	const char *value;

	if (aw_launch_value(arg, "--log", &value))
		return aw_launch_setting(launch->who, "--log", AW_SETTING_LOG, value);
	if (!aw_launch_value(arg, "--mpa", &value))
		return LAUNCH_OTHER;
	if (!value || !aw_policy_parse(value, &policy, why)) {
		fprintf(stderr, "%s: --mpa: %s\n", launch->who, why);
		return LAUNCH_WRONG;
	}
	launch->mpa = value;
	return LAUNCH_TAKEN;
}

// The libraries tell of wrong values, too, but only once the program needs them.
static bool check_environment(const struct launch *launch)
{
	char policy_why[AW_POLICY_WHY_MAX], setting_why[AW_SETTING_WHY_MAX];
	struct aw_policy policy;
	bool right = true;

	if (!launch->mpa && !aw_policy_parse(getenv(AW_POLICY_ENV), &policy, policy_why)) {
		fprintf(stderr, "%s: " AW_POLICY_ENV ": %s\n", launch->who, policy_why);
		return false;
	}
	for (enum aw_setting setting = 0; aw_environment_next_wrong(&setting, setting_why);
	     setting++) {
		fprintf(stderr, "%s: %s\n", launch->who, setting_why);
		right = false;
	}
	return right && aw_tls_options_check(launch->who);
}

bool aw_launch_environment(const struct launch *launch, char dir[PATH_MAX])
{
	struct environment_unknown unknown;
	size_t at = 0;

	if (!check_environment(launch))
		return false;
	if (!aw_libdir_find(dir)) {
		fprintf(stderr, "%s: " CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s: %s\n",
			launch->who, dir, aw_libdir_remedy());
		return false;
	}
	if (strpbrk(dir, ":;$")) {
		fprintf(stderr,
			"%s: LD_LIBRARY_PATH cannot name '%s', for a colon, a semicolon or a "
			"dollar in it: install anywarp somewhere else\n",
			launch->who, dir);
		return false;
	}
	// A name that is like none of anywarp's may be another program's.
	while (aw_environment_next_unknown(&at, &unknown))
		if (unknown.nearest)
			fprintf(stderr,
				"%s: note: %.*s is no variable of anywarp, and has no effect: %s "
				"is one\n",
				launch->who, unknown.len, unknown.name, unknown.nearest);
	if ((!launch->keeps_libraries && !aw_libdir_export(dir)) ||
	    (launch->mpa && setenv(AW_POLICY_ENV, launch->mpa, 1) != 0)) {
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", launch->who);
		return false;
	}
	return true;
}

bool aw_launch_preload(const char *who, const char *dir, const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *joined;
	bool done;

	if (strpbrk(dir, " \t\n")) {
		fprintf(stderr,
			"%s: LD_PRELOAD cannot name '%s', for a blank in it: "
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
	has_preloaded |= done;
	return done;
}

bool aw_launch_find(const char *name, int mode, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *end;
	char usual[PATH_MAX];
	struct stat file;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return access(path, F_OK) == 0;
	}
	if (!dirs && confstr(_CS_PATH, usual, sizeof(usual)) > 0)
		dirs = usual;
	if (!*name || !dirs)
		return false;
	// As execvp looks: an empty element is the working directory.
	do {
		end = strchrnul(dirs, ':');
		snprintf(path, PATH_MAX, "%.*s/%s", end > dirs ? (int)(end - dirs) : 1,
			 end > dirs ? dirs : ".", name);
		if (stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, mode) == 0)
			return true;
		dirs = end + 1;
	} while (*end);
	return false;
}

int aw_launch_open(const char *name, char path[PATH_MAX])
{
	if (!aw_launch_find(name, X_OK, path))
		return -1;
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a FIFO does not wait for its writer
}

static int explain_exec_error(const char *who, const char *name, int error)
{
	char path[PATH_MAX];
	bool found = aw_launch_find(name, X_OK, path);

	/*
	 * execvp returns EACCES, too, when a directory of PATH may not be searched: then it has
	 * found no program.
	 */
	if (error == EACCES && !found && !strchr(name, '/') && !aw_launch_find(name, F_OK, path))
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
			who, path);
		return CLI_NOT_EXECUTABLE;
	default:
		fprintf(stderr, "%s: %s: %s\n", who, name, strerror(error));
		return CLI_NOT_EXECUTABLE;
	}
}

int aw_launch_exec(const struct launch *launch, char **command)
{
	char path[PATH_MAX];
	struct stat file;

	// The loader ignores LD_LIBRARY_PATH in a program that gains privileges: ld.so(8), capabilities(7).
	if (aw_launch_find(command[0], X_OK, path) && stat(path, &file) == 0 &&
	    ((file.st_mode & S_ISUID && file.st_uid != geteuid()) ||
	     (file.st_mode & S_ISGID && file.st_gid != getegid()) ||
	     (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)))
		fprintf(stderr,
			"%s: note: %s is set-user-ID, set-group-ID or has file capabilities, so "
			"the loader will ignore anywarp's libraries: run a copy of it without\n",
			launch->who, path);
	if (has_preloaded && !aw_cli_runtime_export(launch->who, command[0]))
		return CLI_RUN_FAILED;
	execvp(command[0], command);
	return explain_exec_error(launch->who, command[0], errno);
}
