// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The hang-up that AF_UNIX tells when the peer has closed, and TCP only once both directions have ended. Programs drop a connection for it
// with bytes unread. It is removed from a pair as long as another event of the end remains, so that nobody waits for ever. Callers hold no lock.
#ifndef XSOCK_PAIR_HANGUP_H
#define XSOCK_PAIR_HANGUP_H

#include <poll.h>
#include <sys/epoll.h>

/* The program has registered fd in a set, with that data. An event tells the data alone. */
void aw_hangup_note(int epfd, int fd, epoll_data_t data);
/* poll(2) has returned ready. Returns that. */
int aw_hangup_hide_poll(int ready, struct pollfd *fds, nfds_t count);
/* epoll_wait(2) of the set has returned ready. Returns that. */
int aw_hangup_hide_epoll(int ready, int epfd, struct epoll_event *events);

#endif
