// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The declarations that the files of the anywarp command share: its subcommands, its exit statuses,
// and where our two libraries and the bench are.
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <limits.h>
#include <stdbool.h>

enum cli_status {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_RUN_FAILED = 125, // 'run' itself failed; env(1) and timeout(1) use the same
	CLI_NOT_EXECUTABLE = 126,
	CLI_NOT_FOUND = 127,
};

// A subcommand. argv[0] is its own name; the result is the exit status.
struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
	const char *help;
};

extern const struct cli_command aw_cli_run;
extern const struct cli_command aw_cli_check;
extern const struct cli_command aw_cli_sockets;
extern const struct cli_command aw_cli_stat;
extern const struct cli_command aw_cli_capture;
extern const struct cli_command aw_cli_doctor;
extern const struct cli_command aw_cli_bench;
extern const struct cli_command aw_cli_help;

// Every subcommand in the order in which help lists them, ended by NULL.
extern const struct cli_command *const aw_cli_commands[];

// The subcommand of that name, or NULL.
const struct cli_command *aw_cli_find(const char *name);

// True where the word asks for help; then the subcommand's is printed.
bool aw_cli_help_asked(const struct cli_command *command, const char *word);

// The same of an argument that the command does not know. False: that is said.
bool aw_cli_unknown_asks_help(const struct cli_command *command, const char *word);

#define CLI_VERBS_LIB "libibverbs.so.1"
#define CLI_RDMACM_LIB "librdmacm.so.1"

// Writes the directory that holds both our libraries. On failure returns false, and dir
// is where a build tree has them, or an installation where /proc does not name the executable.
__attribute__((warn_unused_result)) bool aw_libdir_find(char dir[PATH_MAX]);

// Returns the remedy where aw_libdir_find has failed.
const char *aw_libdir_remedy(void);

// Puts dir before all others in LD_LIBRARY_PATH. False when out of memory.
__attribute__((warn_unused_result)) bool aw_libdir_export(const char *dir);

// Writes the first of the places, relative to the executable's directory and ended by NULL, that
// holds the file. On failure returns false, and dir is the last of them.
bool aw_beside_find(const char *const *places, const char *file, char dir[PATH_MAX]);

#endif
