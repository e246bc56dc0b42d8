// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FRAMED connections: the program's fd is the kernel's TCP socket, and the wrappers turn what the
// program writes into FPDUs, and FPDUs into what it reads (record/record.h). The kernel does all
// else that a program does with an fd. ANYWARP_SOCKETS_RECORD=off: no connection is FRAMED. Called
// by wrap/ and preload/; the functions take the locks that they need.
//
// A write: the wrapper (wrap/io.c) makes the first I/O if it is due and calls aw_framed_transmit
// (send.c). That takes the tx half's lock, with signal handlers and cancellation put off
// (process/shield.h), and calls aw_record_send, which sends what is left of an earlier FPDU,
// copies the program's bytes into up to sixteen new ones and sends them by one sendmsg. If the
// kernel took an FPDU in part, a thread sends the rest (aw_slot_flush_later); before a fork, an
// exec or the last close the connection is bridged instead, because that thread ends with the
// process. If the socket is full, a blocking call waits in poll(2) without the lock. If the fd has
// become BRIDGED meanwhile, the call goes on as libc's. The kernel reports a reset once: a call
// that has moved bytes returns their count, and the slot keeps the reset for the next call.
#ifndef XSOCK_FRAMED_FRAMED_H
#define XSOCK_FRAMED_FRAMED_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "xsock/framed/arena.h"
#include "xsock/process/fdtab.h"

/*
 * Makes a STARTING socket FRAMED. The active end sends its Request, and learns from the Reply whether its peer has records; at
 * the passive end the whole Request has come, and the Reply goes out. Returns 0 or an errno. Takes the fd table's lock.
 */
int aw_framed_start(struct aw_sock *sock, int fd);
/*
 * The same under TLS, whose handshake is over on fd; all of start-up goes within. The caller wipes the secrets. EAGAIN: the client's Request has
 * not come whole, and nothing has changed; EPROTO: what has come is none; ENODATA: the stream has ended; EOPNOTSUPP: there is no
 * libcrypto, or no such cipher.
 */
int aw_framed_start_tls(struct aw_sock *sock, int fd, const struct aw_record_secrets *secrets);
/* Returns whether the slot's record is under TLS. */
static inline bool aw_framed_is_tls(const struct aw_slot *slot)
{
	return aw_key_is_on(&slot->record.tx.key);
}

/*
 * Before a fork or spawn: takes slots for the accepted connections that have not begun. The process that makes the first I/O
 * begins the record; the others have it from then on. aw_framed_is_begun: some process has begun the slot's record.
 */
void aw_framed_reserve(void);
static inline bool aw_framed_is_begun(const struct aw_slot *slot)
{
	return atomic_load(&slot->role) != 0;
}

/* The same, when a process that is about to begin it has done so. */
bool aw_framed_has_begun(struct aw_slot *slot, int fd);
/*
 * The caller has its proxy process begin the connection: no process that has the slot begins a record. Returns false where one has
 * begun it, or given it up.
 */
bool aw_framed_yield(struct aw_slot *slot, int fd);
/* Returns whether the slot's connection was given up so, or broken by a process that was killed. */
bool aw_framed_is_lost(const struct aw_slot *slot);

/* Returns the slot of a FRAMED fd, or NULL. */
static inline struct aw_slot *aw_framed_slot(int fd)
{
	return aw_fdtab_state(fd) == AW_FD_FRAMED ? atomic_load(&aw_fdtab_slots[fd]) : NULL;
}

/*
 * recvmsg, sendmsg and shutdown. False: fd is not FRAMED, and the wrapper calls libc. True: *result
 * and errno are set.
 */
bool aw_framed_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_framed_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_framed_shutdown(int fd, int how, int *result);
/* Keeps an errno that was met behind the last message of a call with several: the next call on the FRAMED fd returns it. */
void aw_framed_keep_failure(int fd, int err);
/*
 * Called before fd is closed. fd is BRIDGED afterwards if it was the socket's last one, and TCP has yet to take the rest
 * of an FPDU: the rest and the stream's end are the proxy process's then.
 */
void aw_framed_closing(int fd);
/*
 * Sends close_notify where the stream ends with fd, the process's last one of the connection, or a copy of that which a thread has kept
 * beyond the close (aw_slot_finish). The peer would take TCP's end alone for a reset.
 */
void aw_framed_notify_end(struct aw_slot *slot, int fd);
/* The same as for an fd that closes, for all fds of records under TLS, before the process ends. Takes the fd table's lock. */
void aw_framed_notify_all(void);
/* FIONREAD and SIOCATMARK. False: fd is not FRAMED. */
bool aw_framed_pending(int fd, int *count);
bool aw_framed_is_at_mark(int fd, int *at_mark);
/*
 * getsockopt and setsockopt. False: the wrapper calls libc, also where aw_framed_get_option() has
 * failed.
 */
bool aw_framed_get_option(int fd, int level, int name, void *value, socklen_t *len);
bool aw_framed_set_option(int fd, int level, int name, const void *value, socklen_t len,
			  int *result);
/* sendfile(2) from in to the FRAMED out. */
ssize_t aw_framed_sendfile(int out, int in, off64_t *offset, size_t count);
/* splice(2) where in, out or both are FRAMED. flags: SPLICE_F_*. */
ssize_t aw_framed_splice(int in, int out, size_t count, unsigned flags);

/*
 * Called before a fork or an exec: makes the arena, because relatives can pass each other only
 * records in an arena that both have; and bridges the fds whose rest of an FPDU a thread of this process sends.
 */
void aw_framed_prepare_relatives(void);
/*
 * Called before a fork: as above, and starts the proxy process if there are FRAMED fds, so that
 * both have the same one.
 */
void aw_framed_prepare_fork(void);
/*
 * Adds a hold for a child on each slot, where no pthread_atfork handler does it; or gives it up,
 * where no child was made. Take the fd table's lock.
 */
void aw_framed_share(void);
void aw_framed_unshare(void);
/* aw_fdtab_hooks.at_fork. */
void aw_framed_at_fork(bool in_child) AW_REQUIRES(aw_fdtab_mutex);
/* Slots by their numbers, a bit each. */
struct aw_slot_set {
	uint8_t bits[AW_ARENA_SLOTS / 8];
	bool expected; /* the program is a child's, for which each has a hold that it has yet to lock */
};
/*
 * Fills an empty set with the slots of this process, for a program that is to hold them. is_child: a hold is added for
 * it on each, which aw_framed_take_back() gives up. Takes the fd table's lock.
 */
void aw_framed_list(struct aw_slot_set *set, bool is_child);
void aw_framed_take_back(const struct aw_slot_set *set);
/*
 * Takes over slot number, if it is in the set, for this process, which holds it since before the exec, and fills *sock with
 * its socket. False: this process has not got it.
 */
bool aw_framed_inherit(const struct aw_slot_set *set, unsigned number, struct aw_sock *sock);
/* Returns whether the process has FRAMED fds. */
bool aw_framed_any(void);
/*
 * Called before the process ends: has the proxy process send what TCP has yet to take, and gives up all slots. Later calls on
 * FRAMED fds fail with EIO.
 */
void aw_framed_end(void);

#endif
