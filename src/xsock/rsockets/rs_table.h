// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The descriptors of rsockets: which of the process's file descriptors stand for one. A descriptor
// is a real fd, which this table owns with the rsocket behind it: both go when it was closed and
// the last call that held it has returned, so the number cannot come back under a running call.
//
// A forked child has none: the parent's descriptors stay numbers to it, to be closed.
#ifndef XSOCK_RSOCKETS_RS_TABLE_H
#define XSOCK_RSOCKETS_RS_TABLE_H

#include <stdbool.h>

struct aw_rs;

/* Gives rs a number: fd itself, which is the table's from here, unless a program closed an rsocket
 * by close(2) and this is its number. Returns the number, or -errno with fd closed. */
int aw_rs_table_insert(struct aw_rs *rs, int fd) __attribute__((warn_unused_result));

/* The rsocket of a descriptor, held until aw_rs_table_put(fd); NULL: fd is no rsocket's. */
struct aw_rs *aw_rs_table_hold(int fd) __attribute__((warn_unused_result));
void aw_rs_table_put(int fd);

/* Ends the descriptor, which the caller holds: from now on nobody else can hold it. False: another
 * thread has done so. */
bool aw_rs_table_close(int fd) __attribute__((warn_unused_result));

/* Whether fd was an rsocket of the process that forked this one. */
bool aw_rs_table_is_parents(int fd) __attribute__((warn_unused_result));
/* Gives such a number up; the rsocket remains the parent's. */
void aw_rs_table_forget(int fd);

#endif
