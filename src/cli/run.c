// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp run: puts our libraries before the system's and becomes the program. It must change
// nothing else for the program: no fd, no signal, no directory.
#include "cli/cli.h"

#include "net/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const log_levels[] = { "error", "warn", "info", "debug" };

static bool is_log_level(const char *level)
{
	for (size_t i = 0; i < sizeof(log_levels) / sizeof(log_levels[0]); i++) {
		if (!strcmp(log_levels[i], level))
			return true;
	}
	return false;
}

// What the options say. command is NULL-terminated and empty when none was given.
struct run_options {
	const char *log;
	const char *mpa;
	char **command;
};

struct option {
	const char *name;
	bool (*parse)(const char *value, struct run_options *options);
};

static bool parse_log(const char *level, struct run_options *options)
{
	if (!level || !is_log_level(level)) {
		fprintf(stderr, "anywarp run: --log needs one of: error warn info debug\n");
		return false;
	}
	options->log = level;
	return true;
}

static bool parse_mpa(const char *list, struct run_options *options)
{
	char why[AW_POLICY_WHY_MAX] = "needs a list, for example markers=on,crc=off";
	struct aw_policy policy;

	if (!list || !aw_policy_parse(list, &policy, why)) {
		fprintf(stderr, "anywarp run: --mpa: %s\n", why);
		return false;
	}
	options->mpa = list;
	return true;
}

static const struct option options_known[] = {
	{ "--log", parse_log },
	{ "--mpa", parse_mpa },
};

// Takes "--name value" or "--name=value" at *arg, which is left at its last word.
static bool parse_option(char ***arg, struct run_options *options)
{
	for (size_t i = 0; i < sizeof(options_known) / sizeof(options_known[0]); i++) {
		const struct option *option = &options_known[i];
		size_t len = strlen(option->name);

		if (strncmp(**arg, option->name, len) != 0)
			continue;
		if ((**arg)[len] == '=')
			return option->parse(**arg + len + 1, options);
		if (!(**arg)[len])
			return option->parse((*arg)[1] ? *++*arg : NULL, options);
	}
	fprintf(stderr, "anywarp run: unknown option '%s': see 'anywarp help run'\n", **arg);
	return false;
}

static bool parse(char **argv, struct run_options *options)
{
	char **arg = argv + 1;

	for (; *arg && **arg == '-'; arg++) {
		if (!strcmp(*arg, "--")) {
			arg++;
			break;
		}
		if (!parse_option(&arg, options))
			return false;
	}
	options->command = arg;
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

// The loader ignores LD_LIBRARY_PATH in a program that gains privileges: ld.so(8).
static void warn_if_privileged(const char *name)
{
	char path[PATH_MAX];
	struct stat file;

	if (!find_program(name, path) || stat(path, &file) != 0)
		return;
	if ((file.st_mode & S_ISUID && file.st_uid != geteuid()) ||
	    (file.st_mode & S_ISGID && file.st_gid != getegid()))
		fprintf(stderr,
			"anywarp run: note: %s is set-user-ID or set-group-ID, so the loader will "
			"ignore anywarp's libraries: run a copy of it without that bit\n",
			path);
}

static int explain_exec_error(const char *name, int error)
{
	char path[PATH_MAX];
	bool found = find_program(name, path);

	/* execvp says so, too, when a directory of PATH may not be searched: then nothing was found. */
	if (error == EACCES && !found && !strchr(name, '/'))
		error = ENOENT;
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		if (found)
			fprintf(stderr,
				"anywarp run: %s: the interpreter or loader it names does not "
				"exist: check its first line, or build it for this machine\n",
				path);
		else
			fprintf(stderr,
				"anywarp run: no program '%s': check the spelling, give its path, "
				"or install the package that has it\n",
				name);
		return found ? CLI_NOT_EXECUTABLE : CLI_NOT_FOUND;
	case EACCES:
		fprintf(stderr,
			"anywarp run: %s may not be executed: make it executable (chmod +x), and "
			"check its directory and mount options\n",
			name);
		return CLI_NOT_EXECUTABLE;
	default:
		fprintf(stderr, "anywarp run: %s: %s\n", name, strerror(error));
		return CLI_NOT_EXECUTABLE;
	}
}

static bool set_environment(const struct run_options *options)
{
	char dir[PATH_MAX];

	if (!aw_libdir_find(dir)) {
		fprintf(stderr,
			"anywarp run: " CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s: "
			"build them ('./dev build') or install anywarp again\n",
			dir);
		return false;
	}
	if (!aw_libdir_export(dir) ||
	    (options->log && setenv("ANYWARP_LOG", options->log, 1) != 0) ||
	    (options->mpa && setenv(AW_POLICY_ENV, options->mpa, 1) != 0)) {
		fprintf(stderr, "anywarp run: cannot set the environment: out of memory\n");
		return false;
	}
	return true;
}

static int run(int argc, char **argv)
{
	struct run_options options = { 0 };

	(void)argc;
	if (!parse(argv, &options))
		return CLI_RUN_FAILED;
	if (!*options.command) {
		fprintf(stderr, "anywarp run: no program to run: for example "
				"'anywarp run -- rping -s -v'\n");
		return CLI_RUN_FAILED;
	}
	if (!set_environment(&options))
		return CLI_RUN_FAILED;
	warn_if_privileged(options.command[0]);
	execvp(options.command[0], options.command);
	return explain_exec_error(options.command[0], errno);
}

const struct cli_command aw_cli_run = {
	.name = "run",
	.run = run,
	.summary = "run an RDMA program over anywarp",
	.help = "usage: anywarp run [--log LEVEL] [--mpa LIST] [--] PROGRAM [ARGUMENTS]\n"
		"\n"
		"Runs PROGRAM, unmodified, with anywarp's libibverbs.so.1 and librdmacm.so.1 in\n"
		"place of the system's. That is all it does: LD_LIBRARY_PATH set by hand works as\n"
		"well. The other end may be anywarp or any other iWARP.\n"
		"\n"
		"  --log LEVEL   tell on standard error what happens: error (default), warn, info\n"
		"                or debug\n"
		"  --mpa LIST    how connections are set up, for both ends of PROGRAM: a list of\n"
		"                key=value with commas between, as in markers=on,crc=off:\n"
		"                  markers=on|off     ask the peer for markers (default off)\n"
		"                  crc=on|off         ask for CRCs (default on); off only when\n"
		"                                     the peer does not ask for them either\n"
		"                  revision=1|2       the highest MPA revision (default 2)\n"
		"                  p2p=on|off         connecting: ask for peer-to-peer set-up\n"
		"                                     (default on)\n"
		"                  rtr=send+write+read  the ready-to-receive messages to use, one\n"
		"                                     or more of them (default all)\n"
		"                  extensions=on|off  offer atomics and immediates to an anywarp\n"
		"                                     peer (default on)\n"
		"                  ird_ord=auto|ulp   agree on the depths of RDMA Reads, or leave\n"
		"                                     it to the programs (default auto)\n"
		"\n"
		"The exit status is PROGRAM's; 127 when there is no such program, 126 when it\n"
		"cannot be executed, 125 when anywarp itself failed.\n"
		"\n"
		"  anywarp run -- rping -s -v\n"
		"  anywarp run --log info -- ib_write_bw -R 192.0.2.7\n",
};
