// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of 'anywarp stat'. Errors go to standard error.
#ifndef CLI_STAT_H
#define CLI_STAT_H

#include "cli/sheet.h"
#include "cli/stat_rates.h"
#include "xsock/base/sockdiag.h"

#include <stdbool.h>
#include <sys/types.h>

#define STAT_WHO "anywarp stat"

enum stat_kind {
	STAT_PROCESSES,
	STAT_QPS,
	STAT_LISTENERS,
	STAT_CQS,
	STAT_SHEETS,
};

// The TCP sockets of one network namespace, by inode. Zeroed before the first use.
struct stat_sockets {
	struct aw_sockdiag_conn *conns;
	size_t count, room;
	bool loaded, is_short; // is_short: out of memory
	dev_t dev; // of the namespace
	ino_t ino;
};

// Loads the sockets of the process's network namespace, unless they are. Where the kernel does not
// tell of them, there are none.
void aw_stat_sockets_load(struct stat_sockets *sockets, pid_t pid);

// The socket behind an fd of the process; NULL: it is not known.
const struct aw_sockdiag_conn *aw_stat_sockets_find(const struct stat_sockets *sockets, pid_t pid,
						    int fd);

void aw_stat_sockets_fini(struct stat_sockets *sockets);

// One look at the processes.
struct stat_look {
	struct sheet sheets[STAT_SHEETS];
	struct stat_sockets sockets;
	struct stat_rates *rates; // since the look before
	int64_t time_ns; // of CLOCK_REALTIME, when it began
};

// Adds the rows of the process to the sheets. asked: the user named it, so that it is an error when
// it has none. False: there was an error, which was printed.
__attribute__((warn_unused_result)) bool aw_stat_collect(pid_t pid, bool asked,
							 struct stat_look *look);

// The sheets without rows.
void aw_stat_sheets_begin(struct sheet sheets[STAT_SHEETS]);

#endif
