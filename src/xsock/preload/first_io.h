// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first I/O: the program uses a connected socket of iWARP mode for the first time. The calling
// thread decides how the connection begins (detect.h), starts MPA, and swaps the socket where the proxy process carries it. Callers
// hold no lock.
//
// A socket in `on` is a kernel TCP socket until its stream starts MPA (RFC 5044 7.1.3): the kernel
// holds a connection that waits in a backlog, in a forked child or across an exec. A client sends
// a record's Request, whose revision no other MPA accepts, and its FPDUs right behind it; by the
// rule `rsockets`, or without records, it sends an endpoint's Request. Until the Request is whole,
// the server's program finds the connection neither readable nor writable. A peer that sends
// something else, or nothing for ten seconds, is an error: the connection is shut down, which
// wakes the threads that wait for it, and the call fails with EPROTO. Threads that wait in poll(2)
// see to the deadlines (overdue.h).
//
// A server sends the Reply at once, unless the client's stream has ended. If the two cross, the
// kernel answers the Reply with a reset, which drops bytes on both sides; so the proxy process has
// the connection of a client that closes before the Reply has come (aw_answer_is_owed). An
// accepted connection that has not begun may be begun by any process that has it; before a fork or
// spawn it gets a slot, by which one process's first I/O begins the record for all. Where nobody
// can wait for the Request (a passed fd, stdio, a program without the library) the proxy process
// does. A close or exit with an unread Request answers it first. A fork waits for a connect that
// is under way, and in the child that socket is not connected.
#ifndef XSOCK_PRELOAD_FIRST_IO_H
#define XSOCK_PRELOAD_FIRST_IO_H

#include <stdbool.h>

#include "xsock/preload/wait.h"
#include "xsock/process/fdtab.h"

enum aw_first_io {
	AW_FIRST_READ, /* may wait as long as a read of fd would */
	AW_FIRST_WRITE, /* so as a write */
	AW_FIRST_SHUTDOWN, /* may wait until the connection begins, whatever fd's modes: shutdown(2) knows neither EAGAIN nor EINTR */
	AW_FIRST_POLL, /* does not wait: fd may stay undecided */
	AW_FIRST_CLOSE, /* does not wait: the proxy process waits for a client's Request that is not there */
	AW_FIRST_HAND_OVER, /* the same, whether it is there or not; a TLS handshake that is under way has AW_HAND_OVER_NS, if the call may wait */
	AW_FIRST_FORK, /* the same, but that such a handshake is not waited for, and stays this process's */
};

/* How long a fork, a stream of stdio or another program waits for handshakes that are under way, which do not move to another process. */
#define AW_HAND_OVER_NS INT64_C(1500000000)

/*
 * The slow half of aw_first_io, for an fd that is undecided. Returns 0 if the caller goes on with
 * libc's call, or -1 with errno.
 */
int aw_first_io_make(int fd, enum aw_first_io kind, bool dontwait);

/* The same for a connect call that has connected fd. */
int aw_first_io_connected(int fd);

/* Returns the errno that TCP has reported to the library in place of the program, once; 0: none. */
int aw_first_io_take_error(int fd);

/*
 * Polls fd for events and returns the events that are ready, 0 if there are none. Without a time
 * limit a signal ends the wait. With one it does not, because a judgement after a shorter wait may be
 * wrong.
 */
short aw_first_io_poll(int fd, short events, int timeout_ms);

/* Returns whether fd's client has yet to send its Request: no event of fd is for the program. */
bool aw_first_io_hides(int fd);

/*
 * Decides and bridges fd if it is one of 0 to 2: stdio reads and writes those inside libc, without a
 * wrapper. Keeps errno.
 */
void aw_first_io_for_stdio(int fd);

static inline int aw_first_io(int fd, enum aw_first_io kind, bool dontwait)
{
	return aw_fdtab_is_undecided(fd) ? aw_first_io_make(fd, kind, dontwait) : 0;
}

/*
 * The calling thread is about to sleep until bytes come on fd, or fd's connect ends. Returns the
 * socket, which the thread passes to aw_first_io_end_sleep when it has slept. NULL: fd is not
 * undecided.
 */
struct aw_sock *aw_first_io_begin_sleep(int fd);
void aw_first_io_end_sleep(struct aw_sock *sock);

/*
 * The calling thread is about to read or change something of fd's file, in a call that does not
 * wait. Until it gives the pin back, no other thread swaps the file. Waits while another thread
 * starts fd. NULL: fd is decided. aw_first_io_unpin keeps errno; pin may be NULL.
 */
struct aw_sock *aw_first_io_pin(int fd);
void aw_first_io_unpin(struct aw_sock *pin);

/*
 * Returns whether another process may use sock's connection, which this one has not begun.
 */
bool aw_first_io_is_shared(const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Makes sock, which is undecided, plain TCP: its fds leave the table, and its epoll sets and socket
 * options are the program's own again.
 */
void aw_first_io_make_plain(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Gives the socket the program's own SO_RCVLOWAT back. */
void aw_first_io_restore_lowat(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);

#endif
