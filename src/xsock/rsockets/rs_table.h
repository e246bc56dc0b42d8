// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors of rsockets. A descriptor is a real fd, which this table owns together with its
// rsocket: both are closed when the descriptor was closed and the last call that held it has
// returned, so that the number is not reused under a running call. A forked child has no rsockets:
// to it the parent's descriptors are numbers, which it can close. Called by the files of this
// directory.
#ifndef XSOCK_RSOCKETS_RS_TABLE_H
#define XSOCK_RSOCKETS_RS_TABLE_H

#include <stdbool.h>

struct aw_rs;

/*
 * Inserts rs under the number of fd, which the table takes. If a program has closed an rsocket of
 * that number by close(2), fd is moved to another number. Returns the number, or a negative errno
 * with fd closed.
 */
int aw_rs_table_insert(struct aw_rs *rs, int fd) __attribute__((warn_unused_result));

/* Returns the rsocket of a descriptor, held until aw_rs_put; NULL: fd is no rsocket. */
struct aw_rs *aw_rs_table_hold(int fd) __attribute__((warn_unused_result));
/*
 * Gives up a hold. False: the descriptor was closed, and this is the last hold, which the caller keeps: it destroys the rsocket, and
 * then frees the number.
 */
bool aw_rs_table_put(int fd) __attribute__((warn_unused_result));
void aw_rs_table_free(int fd);
/* Called in the child of a fork. */
void aw_rs_table_forked(void);

/*
 * Closes the descriptor, which the caller holds: no other thread can hold it any more. False:
 * another thread has closed it.
 */
bool aw_rs_table_close(int fd) __attribute__((warn_unused_result));

/* Closes a number of the process that forked this one, whose the rsocket stays. False: fd is no such number. */
bool aw_rs_table_forget(int fd) __attribute__((warn_unused_result));

#endif
