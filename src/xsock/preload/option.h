// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of bridged sockets: which are the pair's, which are TCP's, and which are ours.
#ifndef XSOCK_PRELOAD_OPTION_H
#define XSOCK_PRELOAD_OPTION_H

/* A close that has to wait, by SO_LINGER, until what was written is on its way. */
void aw_option_linger(int fd);

/*
 * A read of a bridged fd has told the end of the stream: 0 where that is all, else -1 with the errno that
 * the connection has failed with.
 */
int aw_option_end(int fd);

#endif
