// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A socket that takes the place of another one in the program gets what the program has set on that. Callers hold no lock.
#ifndef XSOCK_PROCESS_TWIN_H
#define XSOCK_PROCESS_TWIN_H

#include <stdbool.h>

/*
 * Copies flags, time-outs, SO_OOBINLINE, SO_PEEK_OFF, and the owner that gets SIGIO and SIGURG. from raises no more signals, unless
 * keeps: other processes share its file, or nothing comes by it any more.
 */
void aw_twin_copy(int from, int to, bool keeps);
/* Copies what an accepted socket has from its listener: time-outs and SO_OOBINLINE. */
void aw_twin_copy_options(int from, int to);

#endif
