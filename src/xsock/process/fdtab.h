// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which fds of the program are, or may become, iWARP sockets. A wrapper reads one byte of the
// table without a lock; all else is done under its lock, with all signals blocked, since a handler
// may close an fd. The lock is never held across a call that may block or come back to us.
#ifndef XSOCK_PROCESS_FDTAB_H
#define XSOCK_PROCESS_FDTAB_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "xsock/base/rules.h"
#include "xsock/process/memory.h"

/* An fd from here on is never in iWARP mode. */
#define AW_FDTAB_MAX 65536

/* From CONNECTING on a call has to wait for, or start, something first. */
enum aw_fd_state {
	AW_FD_NONE, /* not ours: straight to libc */
	AW_FD_CANDIDATE, /* a stream socket that is neither connected nor listens */
	AW_FD_LISTENER,
	AW_FD_BRIDGED, /* one end of a pair whose other end the proxy process has */
	AW_FD_INTERNAL, /* of this library; the program does not know it */
	AW_FD_FRAMED, /* a TCP socket, with a record beside it */
	AW_FD_CONNECTING, /* connect is under way, or done and not looked at */
	AW_FD_PENDING, /* connected, still TCP; MPA starts at the first touch */
	AW_FD_STARTING, /* a thread is at it */
};

enum aw_role {
	AW_ROLE_ACTIVE = 1, /* sends the MPA Request */
	AW_ROLE_PASSIVE = 2,
};

/* One registration in an epoll set, as the program made it. */
struct aw_watch {
	struct aw_watch *next;
	int epfd, fd;
	struct epoll_event event;
	bool told; /* one-shot, and the program has had its event */
	bool wide; /* its set is asked for POLLOUT, too, which event is not */
};

/* A socket; all its fds of this process share it. Under the table's lock. */
struct aw_sock {
	enum aw_fd_state state;
	enum aw_xs_mode mode;
	bool mode_asked; /* by setsockopt: the rules are not asked any more */
	enum aw_role role; /* 0: not known */
	bool extended; /* carried by the engine of this process, not by the proxy process */
	unsigned fds;
	unsigned users; /* who works on it without the lock */
	unsigned sleepers; /* who waits for what the peer sends first */
	unsigned
		deciders; /* of them: threads in a write or close, which decides by itself and soon */
	dev_t dev;
	ino_t ino; /* what the fds must be, or the table is out of date */
	ino_t swapped_ino; /* what they were before; 0: nothing else */
	int domain;
	uint64_t proxy; /* who carries it: aw_proxy_id's; 0: not known */
	bool orphaned; /* its proxy process has died, and no call has told so */
	const void *caller; /* a thread is in its connect: what is its alone; NULL: none is */
	bool connect_told; /* a non-blocking connect's success was told by a second connect */
	int64_t preamble_ns; /* when it is over (doubt.h); 0: there is none */
	int lowat; /* before it */
	struct linger linger;
	struct sockaddr_storage local, remote; /* once bridged */
	struct aw_watch *watches; /* while it is not bridged */
	struct aw_slot *slot; /* of the record, once it is framed */
};

extern _Atomic(uint8_t) aw_fdtab_states[AW_FDTAB_MAX];
/* Of struct aw_watch. */
extern struct aw_pool aw_fdtab_watches;
/* Sockets in CONNECTING, PENDING or STARTING. None: poll and the like have nothing to look for. */
extern _Atomic(unsigned) aw_fdtab_undecided;
/* Sockets in BRIDGED. */
extern _Atomic(unsigned) aw_fdtab_bridged;
/* Of fds that are framed. */
extern _Atomic(struct aw_slot *) aw_fdtab_slots[AW_FDTAB_MAX];
/* What the rooms above the table do when it asks. Constructors set it, before the process has a second thread. */
struct aw_fdtab_hooks {
	/* Without the lock, before a fork: decides each PENDING socket, or starts MPA on it. */
	void (*decide_pending)(void);
	/* With the lock: this process has no fd of the slot's socket any more. */
	void (*leave_slot)(struct aw_slot *slot);
	/* With the lock: this process is about to fork, or is a fork's child. */
	void (*at_fork)(bool in_child);
};
extern struct aw_fdtab_hooks aw_fdtab_hooks;

/* It connects, and the thread that has begun that is still in the call. */
static inline bool aw_fdtab_is_called(const struct aw_sock *sock)
{
	return sock->state == AW_FD_CONNECTING && sock->caller;
}

/* A client has connected, and a thread waits for its first bytes. */
static inline bool aw_fdtab_is_awaited(const struct aw_sock *sock)
{
	return sock->state == AW_FD_PENDING && sock->sleepers > sock->deciders;
}

static inline enum aw_fd_state aw_fdtab_state(int fd)
{
	if ((unsigned)fd >= AW_FDTAB_MAX)
		return AW_FD_NONE;
	return (enum aw_fd_state)atomic_load_explicit(&aw_fdtab_states[fd], memory_order_relaxed);
}

static inline bool aw_fdtab_is_undecided(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) >= AW_FD_CONNECTING, 0);
}

/* Framed, or undecided: the wrappers have something to do. */
static inline bool aw_fdtab_is_special(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) >= AW_FD_FRAMED, 0);
}

static inline bool aw_fdtab_any_undecided(void)
{
	return __builtin_expect(
		atomic_load_explicit(&aw_fdtab_undecided, memory_order_relaxed) != 0, 0);
}

void aw_fdtab_lock(void);
void aw_fdtab_unlock(void);

/* A fresh stream socket: one byte and no more, which aw_fdtab_add may follow. */
void aw_fdtab_mark(int fd);
/*
 * A new socket behind fd, like the given one but for its file; what fd was is forgotten. False: no
 * memory, a number beyond the table, or a child of vfork, which must not change its parent's table.
 */
bool aw_fdtab_add(int fd, const struct aw_sock *like);
/*
 * to becomes another fd of from's socket; what it was is forgotten. undecided: from was, before it was duplicated. Both without
 * the lock.
 */
void aw_fdtab_copy(int from, int to, bool undecided);
/* fd is about to be closed, or its number given to something else. */
void aw_fdtab_forget(int fd);
void aw_fdtab_forget_range(unsigned first, unsigned last);
/* A child of vfork, whose table is its parent's. */
bool aw_fdtab_is_borrowed(void);
/* Keeps fd from the program. */
void aw_fdtab_hide(int fd);
/*
 * Around a fork, and the end in both processes. begin settles what is pending; from then on no other thread makes a
 * socket STARTING. Without the lock.
 */
void aw_fdtab_fork_begin(void);
void aw_fdtab_fork_end(void);
/* libc's _Fork, which calls no handlers of pthread_atfork's. */
pid_t aw_fdtab_bare_fork(void);
/* Whether children that this thread forks go on in its place, and so with what connects. */
void aw_fdtab_leave(bool leaving);

/* The rest needs the lock. */
/* fd's socket; NULL where it has none, or the fd turns out to be another file by now. */
struct aw_sock *aw_fdtab_get(int fd);
/* The same, but a CANDIDATE where it has none; NULL for aw_fdtab_add's reasons. */
struct aw_sock *aw_fdtab_need(int fd);
/* The next fd of the socket above after; -1: no more. Begin with -1. */
int aw_fdtab_next(const struct aw_sock *sock, int after);
void aw_fdtab_set_state(struct aw_sock *sock, enum aw_fd_state state);
/* All its fds become plain ones. */
void aw_fdtab_drop(struct aw_sock *sock);
/* Keeps it alive without the lock. */
void aw_fdtab_hold(struct aw_sock *sock);
void aw_fdtab_release(struct aw_sock *sock);
/* fd's socket, once no thread starts it any more; NULL as for aw_fdtab_get. Sleeps as aw_fdtab_wait does. */
struct aw_sock *aw_fdtab_get_started(int fd);
/* Sleeps, the lock given back meanwhile, until a socket has left STARTING, or has no more sleepers, or no thread forks. */
void aw_fdtab_wait(void);
/* fd is one end of a pair, once no thread starts its socket any more. Without the lock. */
bool aw_fdtab_is_paired(int fd);
/*
 * A thread is about to wait for what comes on sock, which is undecided, and has waited. Who starts sock lets all of them
 * see what has come before somebody else takes it: they would sleep on.
 */
void aw_fdtab_sleep(struct aw_sock *sock);
void aw_fdtab_woken(struct aw_sock *sock);
void aw_fdtab_let_wake(const struct aw_sock *sock);
/* Before a socket becomes STARTING: a child of a fork would have it so for ever. */
void aw_fdtab_await_forks(void);
/* Calls see for each socket once. */
void aw_fdtab_each(void (*see)(struct aw_sock *sock, int fd, void *arg), void *arg);

#endif
