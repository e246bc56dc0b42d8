// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of 'anywarp sockets'. Errors go to standard error.
#ifndef CLI_SOCKETS_H
#define CLI_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/sockets_table.h"

#define SOCKETS_WHO "anywarp sockets"
#define SOCKETS_LIB "libanywarp-sockets.so"

// Rules in the order in which they were given. Zeroed before the first; text is from malloc.
struct sockets_rules {
	char *text; // as ANYWARP_SOCKETS_RULES takes it, or NULL
	size_t len;
};

// Adds the rules of text; errors name its source. False where one is wrong.
__attribute__((warn_unused_result)) bool aw_sockets_rules_add(struct sockets_rules *rules,
							      const char *source, const char *text);
// Adds the rules of a file, likewise.
__attribute__((warn_unused_result)) bool aw_sockets_rules_read(struct sockets_rules *rules,
							       const char *path);

// Returns whether a socket of the program may have to be iWARP.
bool aw_sockets_rules_may_iwarp(const struct sockets_rules *rules, const char *program);

// True unless a rule says 'auto', of which nothing has TLS; then an error was printed.
bool aw_sockets_rules_are_protected(const struct sockets_rules *rules);

// Returns whether a rule asks for TLS, which is then to be required; an error was printed.
bool aw_sockets_rules_need_tls(const struct sockets_rules *rules);

// Returns why a preloaded library does not see the program's sockets; NULL: it does, as far as its file tells.
const char *aw_sockets_unseen(const char *program);

bool aw_sockets_library_in(const char *dir);

// Prints the fds of the process that are iWARP, ends of pairs or plain TCP, or with NULL of all processes that we may look at.
// Returns the exit status.
int aw_sockets_status(const char *pid);

// Adds a row for each fd of the process that is a record. False: not all of them could be listed, and
// the error was printed. asked: that we may not look at the process is an error, too.
__attribute__((warn_unused_result)) bool aw_sockets_records(pid_t pid, bool asked,
							    struct sheet *table);

struct sockets_plain;

// Adds a row for each fd of the process that is an end of a pair, or plain TCP for a reason that it has noted in plain, as far as
// we may look at the process.
void aw_sockets_pairs(pid_t pid, struct sheet *table, struct sockets_plain *plain);

// Prints an error. Returns false.
__attribute__((format(printf, 1, 2))) bool aw_sockets_fail(const char *format, ...);

#endif
