// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The anywarp command: picks the subcommand.
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct cli_command *const aw_cli_commands[] = {
	&aw_cli_run,	&aw_cli_check, &aw_cli_sockets, &aw_cli_stat, &aw_cli_capture,
	&aw_cli_doctor, &aw_cli_bench, &aw_cli_help,	NULL,
};

const struct cli_command *aw_cli_find(const char *name)
{
	for (size_t i = 0; aw_cli_commands[i]; i++) {
		if (!strcmp(aw_cli_commands[i]->name, name))
			return aw_cli_commands[i];
	}
	return NULL;
}

static bool is_one_of(const char *arg, const char *brief, const char *whole)
{
	return !strcmp(arg, brief) || !strcmp(arg, whole);
}

bool aw_cli_help_asked(const struct cli_command *command, const char *word)
{
	if (!is_one_of(word, "-h", "--help"))
		return false;
	fputs(command->help, stdout);
	return true;
}

bool aw_cli_unknown_asks_help(const struct cli_command *command, const char *word)
{
	if (aw_cli_help_asked(command, word))
		return true;
	fprintf(stderr, "anywarp %s: unknown argument '%s': see 'anywarp help %s'\n", command->name,
		word, command->name);
	return false;
}

static int dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	const struct cli_command *command;

	if (is_one_of(name, "-V", "--version")) {
		puts("anywarp " AW_VERSION);
		return CLI_OK;
	}
	if (is_one_of(name, "-h", "--help"))
		name = "help";
	command = aw_cli_find(name);
	if (!command) {
		fprintf(stderr, "anywarp: no subcommand '%s': 'anywarp help' lists them\n", name);
		return CLI_USAGE;
	}
	if (argc < 2)
		return command->run(argc, argv);
	if (argc > 2 && aw_cli_help_asked(command, argv[2]))
		return CLI_OK;
	return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	static char output
		[16384]; // a help text whole: the reason why it cannot be written is then fflush's
	int status;

	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, output, _IOFBF, sizeof(output));
	status = dispatch(argc, argv);
	// Output cut off by a full disk, such as the rules of --check, must not look complete.
	bool failed = ferror(stdout) != 0;
	int error = fflush(stdout) != 0 ? errno : failed ? EIO : 0;

	if (error)
		fprintf(stderr, "anywarp: cannot write the output: %s\n", strerror(error));
	return error && status == CLI_OK ? CLI_FAILED : status;
}
