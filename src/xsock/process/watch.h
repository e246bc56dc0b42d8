// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of epoll registrations of sockets that may yet be swapped: epoll knows a file, not its
// number, so the new file behind the number has to be registered as the old one was.
#ifndef XSOCK_PROCESS_WATCH_H
#define XSOCK_PROCESS_WATCH_H

#include <sys/epoll.h>

#include "xsock/process/fdtab.h"

/* All with the table's lock. */

/* What a successful epoll_ctl(epfd, op, fd, event) has done to a socket that is not bridged yet. */
/* wide: POLLOUT was asked for, too, and is not in event. */
void aw_watch_note(struct aw_sock *sock, int epfd, int op, int fd, const struct epoll_event *event,
		   bool wide);
/*
 * Notes what the kernel says that the fds of such sockets are registered for, all of them STARTING and held. Without
 * the lock.
 */
void aw_watch_read(struct aw_sock *const *socks, int count);
/*
 * Swaps the file of fd for that of new, and takes fd's registrations along; what was one-shot and has
 * been told stays silent. 0 or an errno; then all is as it was.
 */
int aw_watch_swap(struct aw_sock *sock, int fd, int new_fd);
/*
 * While it connects its sets must also tell of POLLOUT, whatever the program wants to know. What was not widened is not
 * narrowed: a registration that is made anew tells its event once more.
 */
void aw_watch_widen(struct aw_sock *sock);
void aw_watch_narrow(struct aw_sock *sock);
/* The watch of a undecided socket in set epfd that told data; NULL: none. */
struct aw_watch *aw_watch_find(int epfd, epoll_data_t data, struct aw_sock **sock);

#endif
