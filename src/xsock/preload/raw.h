// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// System calls that the program makes by syscall(2), on fds of the table. The caller holds no lock.
#ifndef XSOCK_PRELOAD_RAW_H
#define XSOCK_PRELOAD_RAW_H

#include <stdbool.h>

/*
 * Returns which argument of the system call is an fd that it reads, writes or waits for; -1: none.
 */
int aw_raw_fd_argument(long number);

/*
 * If the system call is about a framed fd, makes it by the wrappers. False: the caller makes the
 * system call.
 */
bool aw_raw_call_framed(long number, const long *arguments, long *result);

#endif
