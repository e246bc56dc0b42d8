// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process that a subcommand is to look into. Errors go to standard error, behind the subcommand's name.
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include "net/stat/stat_read.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

// Reads the number of a process. False, without a word: text is anything else.
__attribute__((warn_unused_result)) bool aw_process_parse(const char *text, pid_t *pid);

// The same, and prints what is wrong; so is a second number, which finds *pid not 0.
__attribute__((warn_unused_result)) bool aw_process_number(const char *who, const char *text,
							   pid_t *pid);

// Returns whether /proc is there, without which no process can be looked at; else prints so.
__attribute__((warn_unused_result)) bool aw_process_can_look(const char *who);

// Writes the path of a libibverbs that the process has loaded and that is not anywarp's. False: there is none, or it is
// not known.
bool aw_process_foreign(pid_t pid, char path[PATH_MAX]);

// Calls look for each process that the user may look at. False: /proc cannot be read, or a look has returned false. A
// process may end meanwhile.
__attribute__((warn_unused_result)) bool aw_process_each(
	const char *who, bool (*look)(pid_t pid, uid_t owner, void *arg), void *arg);

// Prints why its table could not be read. Returns false.
bool aw_process_report(const char *who, enum aw_stat_result result, pid_t pid);

#endif
