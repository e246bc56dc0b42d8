// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registrations in epoll sets of sockets that may yet be swapped. epoll registers a file, not a
// number: after a swap, fd has a new file, which must be registered as the old one was.
#ifndef XSOCK_PROCESS_REGISTRATION_H
#define XSOCK_PROCESS_REGISTRATION_H

#include <sys/epoll.h>
#include <sys/stat.h>

#include "xsock/process/fdtab.h"

/*
 * Notes what a successful epoll_ctl(epfd, op, fd, event) has done to a socket that is not bridged
 * yet. wide: the kernel reports other events than event's.
 */
void aw_registration_note(struct aw_sock *sock, int epfd, int op, int fd,
			  const struct epoll_event *event, bool wide) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Notes for which events fds of these sockets are registered, as /proc/self/fdinfo lists them. All
 * sockets are STARTING and held.
 */
void aw_registration_read(struct aw_sock *const *socks, int count) AW_EXCLUDES(aw_fdtab_mutex);
/*
 * Replaces the file of fd by that of new_fd, and registers the new file in fd's sets. A one-shot
 * registration whose event was delivered stays silent. Returns 0, or an errno if fd is unchanged.
 */
int aw_registration_swap(struct aw_sock *sock, int fd, int new_fd) AW_REQUIRES(aw_fdtab_mutex);
/*
 * The same for all fds of sock, but for those that the program has made another file unseen. The socket's file is that of new_fd, which
 * is file, from there on; a number that another thread copies meanwhile follows it.
 */
void aw_registration_swap_all(struct aw_sock *sock, int new_fd, const struct stat *file)
	AW_REQUIRES(aw_fdtab_mutex);
/*
 * While sock connects, its sets must report POLLOUT, whatever the program has asked for: widen adds
 * it. narrow removes it from the registrations that widen has changed, and leaves the others alone,
 * because a registration that is made anew reports its event again.
 */
void aw_registration_widen(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
void aw_registration_narrow(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* While sock's handshake waits for the peer, its sets report EPOLLIN, or EPOLLOUT alone where it waits for room; until narrow. */
void aw_registration_await(struct aw_sock *sock, uint32_t events) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Returns the registration in set epfd of an undecided socket with this data, and its socket. NULL:
 * none.
 */
struct aw_registration *aw_registration_find(int epfd, epoll_data_t data, struct aw_sock **sock)
	AW_REQUIRES(aw_fdtab_mutex);

#endif
