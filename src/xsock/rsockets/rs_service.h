// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One thread of a process for what has to go on while the program does something else: listeners
// are served, and connections begun without waiting are driven until they stand or have failed.
#ifndef XSOCK_RSOCKETS_RS_SERVICE_H
#define XSOCK_RSOCKETS_RS_SERVICE_H

/* Looks after an rsocket until that is no longer needed. */
int aw_rs_service_watch(int fd) __attribute__((warn_unused_result));

/* Has the thread look again at what it watches. */
void aw_rs_service_wake(void);

/* In the child of a fork, which has no such thread. */
void aw_rs_service_forked(void);

#endif
