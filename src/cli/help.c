// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp help: the overview for a newcomer, and the page of each subcommand.
#include "cli/cli.h"
#include "cli/environment.h"

#include <stdio.h>
#include <string.h>

static int help(int argc, char **argv)
{
	const struct cli_command *command;

	if (argc < 2) {
		puts("anywarp runs RDMA programs on a machine without an RDMA adapter, kernel module or\n"
		     "root: the program's verbs become iWARP over plain TCP.\n"
		     "\n"
		     "usage: anywarp SUBCOMMAND [ARGUMENTS]\n");
		for (size_t i = 0; aw_cli_commands[i]; i++)
			printf("  %-10s %s\n", aw_cli_commands[i]->name,
			       aw_cli_commands[i]->summary);
		puts("  --version  print the version\n"
		     "\n"
		     "Try it, in two terminals of this machine:\n"
		     "\n"
		     "  anywarp run -- rping -s -v\n"
		     "  anywarp run -- rping -c -a 127.0.0.1 -v -C 5\n"
		     "\n"
		     "'anywarp SUBCOMMAND --help' tells more; 'man anywarp' tells all.");
		return CLI_OK;
	}
	if (!strcmp(argv[1], "environment")) {
		aw_environment_print();
		return CLI_OK;
	}
	command = aw_cli_find(argv[1]);
	if (!command) {
		fprintf(stderr, "anywarp help: no subcommand '%s': 'anywarp help' lists them\n",
			argv[1]);
		return CLI_USAGE;
	}
	fputs(command->help, stdout);
	return CLI_OK;
}

const struct cli_command aw_cli_help = {
	.name = "help",
	.run = help,
	.summary = "show this text, the help of a subcommand, or 'environment'",
	.help = "usage: anywarp help [SUBCOMMAND | environment]\n"
		"\n"
		"Shows what anywarp is for, the help of one subcommand, or the variables of the\n"
		"environment that anywarp reads.\n",
};
