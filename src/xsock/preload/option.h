// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of bridged sockets: which are the pair's, which are TCP's, and which are ours.
#ifndef XSOCK_PRELOAD_OPTION_H
#define XSOCK_PRELOAD_OPTION_H

/* A close that has to wait, by SO_LINGER, until what was written is on its way. */
void aw_option_linger(int fd);

#endif
