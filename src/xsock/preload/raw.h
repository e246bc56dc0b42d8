// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// System calls by their numbers: syscall(2).
#ifndef XSOCK_PRELOAD_RAW_H
#define XSOCK_PRELOAD_RAW_H

#include <stdbool.h>

/* Where number has an fd that it reads, writes or waits for: which argument; -1: not of these. */
int aw_raw_fd_argument(long number);

/* A framed fd's calls are our wrappers', by whatever name. False: the kernel's own is right. */
bool aw_raw_call_framed(long number, const long *arguments, long *result);

#endif
