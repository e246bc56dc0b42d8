// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of the program's fds that are, or may become, iWARP sockets. The wrappers read an fd's
// state, one byte, without a lock. Everything else needs the table's lock, whose holder is quiet
// (quiet.h), because a signal handler may close an fd. No thread holds the lock across a call
// that may block or call this library again.
//
// Calls that no wrapper sees change a number unseen: the table notices by the file's inode. A call
// that needs the file of an undecided fd as it is (fcntl, ioctl, getsockopt, setsockopt, shutdown)
// pins it (aw_first_io_pin): the thread that makes the socket STARTING waits until the call is
// over.
//
// Other threads may be in a call on an fd while its socket is swapped. A thread that sleeps on the
// TCP socket gets what came before start-up takes it (aw_fdtab_begin_sleep). Options set and
// duplicates made meanwhile are made once more when the fd is a pair. close(2) waits until
// start-up is over, because the starting thread uses the number.
#ifndef XSOCK_PROCESS_FDTAB_H
#define XSOCK_PROCESS_FDTAB_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/thread_safety.h"
#include "xsock/base/ip.h"
#include "xsock/base/rules.h"
#include "xsock/process/fd_state.h"
#include "xsock/process/memory.h"

/* fds from this number on are never in iWARP mode. */
#define AW_FDTAB_MAX 65536

enum aw_role {
	AW_ROLE_ACTIVE = 1, /* sends the MPA Request */
	AW_ROLE_PASSIVE = 2,
};

/* One registration of an fd in an epoll set. */
struct aw_registration {
	struct aw_registration *next;
	int epfd, fd;
	struct epoll_event event;
	bool delivered; /* the registration is one-shot, and the program has received its event */
	bool widened; /* the kernel reports other events than the program asked for */
};

/* A socket, which all its fds of this process share. The table's lock guards all fields. */
struct aw_sock {
	enum aw_fd_state state;
	enum aw_xs_mode mode;
	bool mode_is_set; /* the program has set mode by setsockopt: the rules do not apply */
	enum aw_role role; /* 0: unknown */
	/* libanywarp-xsock.so in this process, not the proxy process, has the connection. */
	bool extended;
	unsigned fds;
	int lowest, highest; /* no fd of the socket is outside */
	unsigned users; /* threads that use the struct without the table's lock */
	unsigned
		sleepers; /* threads that wait for the peer's first bytes, or need the file as it is */
	dev_t dev;
	ino_t ino; /* dev and ino: the file that the fds must still be */
	ino_t swapped_ino; /* the file's inode before the swap; 0: not swapped */
	uint64_t proxy; /* aw_proxy_id of the proxy process that has the connection; 0: unknown */
	bool orphaned; /* its proxy process has died, and no call has reported that yet */
	/* Identifies the connect call that made the socket CONNECTING; NULL once that call has returned. */
	const void *caller;
	bool connect_reported; /* a connect call has returned success */
	/* TCP reported this errno while a call that could not return it started MPA: the next one gets it; 0: none */
	int error;
	int64_t due_ns; /* deadline of the peer's Request, or of its Reply (deadline.h); 0: neither is due */
	int lowat; /* the program's SO_RCVLOWAT while the library waits for the rest of a Request; 0: it does not */
	/*
	 * Where TLS is required, until the connection is a record: its handshake (framed/tls_start.h), and whether that has sent or
	 * taken a byte, so that neither another process nor the proxy process can carry the connection any more.
	 */
	struct aw_tls_start *tls;
	bool tls_begun;
	bool shared; /* the process has forked since the accept: another one may begin the connection */
	struct linger linger;
	union aw_address local, remote; /* set when the socket is bridged */
	struct aw_registration *registrations; /* until the socket is bridged */
	struct aw_slot *slot; /* the record's slot, once the socket is framed */
	/* Of a pair, for calls that end as TCP's: */
	bool shut; /* the program has shut its writing direction */
	bool end_told; /* a read has returned the stream's end */
	bool lost_told; /* a write has succeeded that the peer, which has closed, will not get */
	bool reset_told; /* a call has returned ECONNRESET: later reads return the end, later writes EPIPE */
	bool is_pair; /* BRIDGED, and the other end of the pair is the peer's own (pair/offer.h) */
	bool unannounced; /* a listener in mode `auto` whose connections no call has waited for so far (pair/attend.h) */
	/* INTERNAL, and closed with the socket: the TCP socket of a pair, or the registration of a listener; 0: none */
	int beside;
	ino_t beside_ino; /* the file that it must still be */
	unsigned
		connects; /* blocking calls of connect between the end of their offer and their return (pair/offer.h) */
	uint16_t born; /* of a candidate: how many forks were over when it was made */
};

extern _Atomic(uint8_t) aw_fdtab_states[AW_FDTAB_MAX];
/* The memory of struct aw_registration. */
extern struct aw_pool aw_fdtab_registrations;
/* The number of undecided sockets. While it is 0, poll and the like go straight to libc. */
extern _Atomic(unsigned) aw_fdtab_undecided;
/* The number of sockets in BRIDGED. */
extern _Atomic(unsigned) aw_fdtab_bridged;
/* The number of sockets in LISTENER. */
extern _Atomic(unsigned) aw_fdtab_listeners;
/* The number of sockets that are unannounced. */
extern _Atomic(unsigned) aw_fdtab_unannounced;
/* The slots of fds that are framed; NULL for others. */
extern _Atomic(struct aw_slot *) aw_fdtab_slots[AW_FDTAB_MAX];
/*
 * Calls of the table to the rooms above it. preload/begin.c defines the table of them, which no constructor has to fill:
 * another library's may use sockets first. settle, at_fork and renew_locks may be NULL.
 */
struct aw_fdtab_hooks {
	/* Called without the lock before a fork: decides the undecided sockets. */
	void (*settle)(void);
	/* Called with the lock: this process has closed its last fd of the slot's socket. */
	void (*leave_slot)(struct aw_slot *slot);
	/* Called without the lock: fd is about to become another file, and no thread works on the slot's record by it. */
	void (*keep_slot)(struct aw_slot *slot, int fd);
	/* Called with the lock: this process is about to fork, or is the child of a fork. */
	void (*at_fork)(bool in_child);
	/* Called with the lock: frees a socket's handshake, which no thread uses. NULL where there is none. */
	void (*end_tls)(struct aw_tls_start *tls);
	/*
	 * Called in the child of a fork, before all else: makes the locks anew that a thread of the parent's may have held. in_step: one was
	 * in OpenSSL (aw_fdtab_begin_step).
	 */
	void (*renew_locks)(bool in_step);
};
extern const struct aw_fdtab_hooks aw_fdtab_hooks;

/* The thread that began to connect sock is still in that call. */
static inline bool aw_fdtab_is_in_connect(const struct aw_sock *sock)
{
	return sock->state == AW_FD_CONNECTING && sock->caller;
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

/* The fd is framed or undecided. */
static inline bool aw_fdtab_is_special(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) >= AW_FD_FRAMED, 0);
}

static inline bool aw_fdtab_any_listener(void)
{
	return atomic_load_explicit(&aw_fdtab_listeners, memory_order_relaxed);
}

static inline bool aw_fdtab_any_unannounced(void)
{
	return atomic_load_explicit(&aw_fdtab_unannounced, memory_order_relaxed) != 0;
}

static inline bool aw_fdtab_any_undecided(void)
{
	return __builtin_expect(
		atomic_load_explicit(&aw_fdtab_undecided, memory_order_relaxed) != 0, 0);
}

/*
 * A number and its record change at one moment (fdtab_change.c). A thread that works on a record by fd counts itself among fd's
 * users first, and looks then whether fd is still FRAMED with that slot. Each user is under a shield and sleeps in no call but for a
 * half's lock.
 */
#define AW_FDTAB_LINE \
	16 /* counts that fit in a cache line: those of neighbours lie in different ones */
extern _Atomic(uint32_t) aw_fdtab_users[AW_FDTAB_MAX];

static inline _Atomic(uint32_t) *aw_fdtab_users_of(int fd)
{
	const unsigned lines = AW_FDTAB_MAX / AW_FDTAB_LINE, number = (unsigned)fd;

	return &aw_fdtab_users[number % lines * AW_FDTAB_LINE + number / lines % AW_FDTAB_LINE];
}

static inline void aw_fdtab_enter(int fd)
{
	atomic_fetch_add(aw_fdtab_users_of(fd), 1);
}

static inline void aw_fdtab_leave(int fd)
{
	atomic_fetch_sub_explicit(aw_fdtab_users_of(fd), 1, memory_order_release);
}

/* Called by a user of fd: returns whether fd is FRAMED with that slot, and stays so until the user leaves. */
static inline bool aw_fdtab_holds(int fd, const struct aw_slot *slot)
{
	return (unsigned)fd < AW_FDTAB_MAX && atomic_load(&aw_fdtab_states[fd]) == AW_FD_FRAMED &&
	       atomic_load(&aw_fdtab_slots[fd]) == slot;
}

/* Wait until fd, or any fd of sock, or of the table, has no users, a second at most: a user may wait for a process that is stopped. True: there is none. */
bool aw_fdtab_drain(int fd);
bool aw_fdtab_drain_socket(const struct aw_sock *sock);
bool aw_fdtab_drain_all(void);

/*
 * A call that changes the file of a number. begin makes fd LEAVING and drains it; the caller makes the kernel's call; end says what
 * fd is then. Threads that meet a LEAVING number wait until the kernel's table has changed, and look again.
 */
struct aw_change {
	int fd;
	unsigned turn; /* this change of fd, of all; 0: the table has no part in it */
	enum aw_fd_state before; /* of an fd without a socket */
	struct aw_sock *next; /* the socket of which fd is to be one more fd; held */
};
/* fd: -1 before a call that duplicates from to a new number. from: -1 before a close. */
void aw_fdtab_begin_change(struct aw_change *change, int fd, int from);
/* result: what the call has returned, negative if the number has its old file; else the duplicate's number. Returns it; keeps errno. */
int aw_fdtab_end_change(struct aw_change *change, int result);
/* Waits while fd is LEAVING and the kernel has still its old file. */
void aw_fdtab_await_left(int fd);

extern aw_mutex aw_fdtab_mutex;
void aw_fdtab_lock(void) AW_ACQUIRE(aw_fdtab_mutex);
void aw_fdtab_unlock(void) AW_RELEASE(aw_fdtab_mutex);

/*
 * Makes fd, a new stream socket, a CANDIDATE. Costs one byte; aw_fdtab_get_or_add adds the socket
 * when it is needed.
 */
void aw_fdtab_mark(int fd);
/* Returns whether another process may have fd's file, a candidate's: a fork is over that began after fd was made. */
bool aw_fdtab_is_shared(int fd) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Adds a new socket with fd as its only fd, and forgets what fd was before. Copies like, except its
 * file and its counts; NONE leads to its state. False: no memory, a number beyond the table, or a child of vfork, which must
 * not change its parent's table.
 */
bool aw_fdtab_add(int fd, const struct aw_sock *like);
/* Logs that fd stays plain TCP although its mode is iWARP, or is refused, since the table has no socket for it. */
void aw_fdtab_log_left_out(int fd, bool is_refused);
/*
 * Forgets what fd was: the kernel has just given the number to the caller. A thread that is still in a record by that number keeps
 * the record's slot taken. Call both functions without the lock.
 */
void aw_fdtab_forget(int fd);
/*
 * This process is a child of vfork, which runs in its parent's memory and so sees its parent's
 * table.
 */
bool aw_fdtab_is_vfork_child(void);
/* Makes fd INTERNAL: the wrappers hide it from the program. */
void aw_fdtab_hide(int fd);
/* For the child of a fork: closes an INTERNAL fd that a thread of the parent has worked with. */
void aw_fdtab_close_hidden(int fd) AW_REQUIRES(aw_fdtab_mutex);
/*
 * The callers of fork call begin before it, and end after it in both processes. begin settles the
 * undecided sockets; until end no other thread makes a socket STARTING. Call both without the lock.
 */
void aw_fdtab_fork_begin(void);
void aw_fdtab_fork_end(void);
/* Has the library notice forks. The first use of the table does so as well. */
void aw_fdtab_watch_forks(void);
/* In between no other thread makes a socket STARTING. Call both without the lock. allow keeps errno. */
void aw_fdtab_bar_starts(void);
void aw_fdtab_allow_starts(void);
/*
 * A thread is in OpenSSL between begin and end, and a fork by a wrapper waits for its end, and it for the fork's: the child finds
 * OpenSSL's locks free. Call both without the lock.
 */
void aw_fdtab_begin_step(void);
void aw_fdtab_end_step(void);
/*
 * Calls libc's _Fork, which runs no handlers of pthread_atfork, and does their work itself. Returns
 * as fork(2).
 */
pid_t aw_fdtab_bare_fork(void);
/*
 * True: the next fork of the calling thread is daemon(3)'s, whose parent exits; the child keeps the
 * sockets that connect.
 */
void aw_fdtab_set_parent_exits(bool exits);

/*
 * Copies fd's socket as it is now, where copy is not NULL. False: fd has none, as for aw_fdtab_get, also because the program has
 * closed fd in a way that this library does not see, and its number is another file's.
 */
bool aw_fdtab_look(int fd, struct aw_sock *copy);

/*
 * The program is about to give the number fd to another file: if a socket has fd beside it, moves that to another number. Call
 * without the lock.
 */
void aw_fdtab_free_beside(int fd);

/*
 * Returns fd's socket. NULL: fd has none, or fd is another file by now, which the table then
 * forgets.
 */
struct aw_sock *aw_fdtab_get(int fd) AW_REQUIRES(aw_fdtab_mutex);
/* Returns whether fd is still sock's file: the program may have closed it without a wrapper. */
bool aw_fdtab_is_file_of(int fd, const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Returns fd's socket, or adds a CANDIDATE. NULL: for the reasons of aw_fdtab_add. */
struct aw_sock *aw_fdtab_get_or_add(int fd) AW_REQUIRES(aw_fdtab_mutex);
/* Returns the lowest fd of the socket above after, or -1. Pass -1 for the first fd. */
int aw_fdtab_next_fd(const struct aw_sock *sock, int after) AW_REQUIRES(aw_fdtab_mutex);
/* The only function that changes a socket's state; asserts the arrow (fd_state.h). */
void aw_fdtab_set_state(struct aw_sock *sock, enum aw_fd_state state) AW_REQUIRES(aw_fdtab_mutex);
/* Puts fd, which may be 0, beside the socket. */
void aw_fdtab_set_beside(struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex);
/* Returns what is beside the socket, or 0: there is nothing, or the program has closed it in a way that this library does not see. */
int aw_fdtab_beside(const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* The socket is unannounced no more. */
void aw_fdtab_note_announced(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Closes what is beside the socket. */
void aw_fdtab_close_beside(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Makes all fds of the socket NONE; frees the socket unless a thread holds it. */
void aw_fdtab_drop(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Puts an unconnected socket in the place of all fds of sock, whose connection this process has no longer. */
void aw_fdtab_disconnect(const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* The handshake of sock is its parent's, which a thread may be in: the child of a fork begins its own. */
void aw_fdtab_forget_tls(void) AW_REQUIRES(aw_fdtab_mutex);
/* Takes sock's slot away; the process's hold on it stays. */
void aw_fdtab_drop_slot(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/* Keep sock alive while its caller does not hold the lock. */
void aw_fdtab_hold(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
void aw_fdtab_release(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Returns fd's socket, or NULL as aw_fdtab_get does. Sleeps in aw_fdtab_await_change while the
 * socket is STARTING.
 */
struct aw_sock *aw_fdtab_get_started(int fd) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Releases the lock, sleeps until a socket leaves STARTING, loses its last sleeper, or a fork ends,
 * and takes the lock again. May wake for no reason.
 */
void aw_fdtab_await_change(void) AW_REQUIRES(aw_fdtab_mutex);
/* The same, for about a millisecond at most. */
void aw_fdtab_await_change_briefly(void) AW_REQUIRES(aw_fdtab_mutex);
/* Wakes the threads in both. */
void aw_fdtab_note_change(void) AW_REQUIRES(aw_fdtab_mutex);
/* Returns whether fd is BRIDGED; waits while fd's socket is STARTING. */
bool aw_fdtab_is_paired(int fd) AW_EXCLUDES(aw_fdtab_mutex);
/* The same for the pair that stands for the TCP socket with that inode: fd may be another connection's by now. */
bool aw_fdtab_is_pair_of(int fd, ino_t ino) AW_EXCLUDES(aw_fdtab_mutex);
/*
 * A thread calls begin_sleep before it waits for bytes on sock, which is undecided, and end_sleep
 * when it has waited. The thread that starts sock
 * calls await_sleepers, so that each sleeping thread wakes by the bytes that have come: later they
 * are no longer in the socket.
 */
void aw_fdtab_begin_sleep(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
void aw_fdtab_end_sleep(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
void aw_fdtab_await_sleepers(const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
/*
 * Waits until no other thread forks. Called before a socket becomes STARTING, because in the child
 * of a fork the socket would stay STARTING.
 */
void aw_fdtab_await_forks(void) AW_REQUIRES(aw_fdtab_mutex);
/* Returns one more than the highest fd that has a socket; 0: none has one. */
unsigned aw_fdtab_end(void) AW_EXCLUDES(aw_fdtab_mutex);
/*
 * Returns the lowest fd, from `from` on, whose socket is wanted, or -1. It takes the lock itself, so that
 * a loop over the fds does what it does with each without the lock.
 */
typedef bool aw_fdtab_wanted(const struct aw_sock *sock, int fd, const void *arg);
int aw_fdtab_find(int from, aw_fdtab_wanted *wanted, const void *arg) AW_EXCLUDES(aw_fdtab_mutex);
/* Calls see for each fd that has a socket. */
void aw_fdtab_each(void (*see)(struct aw_sock *sock, int fd, void *arg), void *arg)
	AW_REQUIRES(aw_fdtab_mutex);

#endif
