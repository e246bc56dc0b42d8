// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the statistics table of another process, for 'anywarp stat'. That process may be no friend and may write to
// the table at any time: the table is copied by pread(2) and never mapped, so that a hole in it costs no memory, and
// rows that cannot be right are left out.
#ifndef NET_STAT_READ_H
#define NET_STAT_READ_H

#include "net/stat/stat_layout.h"

#include <sys/types.h>

struct aw_stat_copy {
	struct aw_stat_head head;
	union aw_stat_row *rows; /* each of a kind, with numbers within their bounds; from malloc */
	uint32_t count, room;
};

enum aw_stat_result {
	AW_STAT_READ,
	AW_STAT_ABSENT, /* the process has no table: no device is open in it */
	AW_STAT_GONE, /* there is no such process */
	AW_STAT_REFUSED, /* errno: this process may not look at its fds */
	AW_STAT_STRANGE, /* it has a file of that name that is no table of this version */
	AW_STAT_FAILED, /* errno: no memory */
};

/*
 * Opens the table of the process, with flags O_RDONLY or O_RDWR; number is its fd in the process. The caller closes fd
 * after AW_STAT_READ; AW_STAT_FAILED does not occur. AW_STAT_STRANGE takes 0.2 s: a table that is being made becomes one.
 */
enum aw_stat_result aw_stat_open(pid_t pid, int flags, int *fd, int *number)
	__attribute__((warn_unused_result));

/* Copies the table of the process. After AW_STAT_READ the caller frees copy->rows. */
enum aw_stat_result aw_stat_read(pid_t pid, struct aw_stat_copy *copy)
	__attribute__((warn_unused_result));

/* As aw_stat_read, of a table that is open. */
enum aw_stat_result aw_stat_read_fd(int fd, struct aw_stat_copy *copy)
	__attribute__((warn_unused_result));

#endif
