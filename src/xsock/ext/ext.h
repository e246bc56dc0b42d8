// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An extended socket: an endpoint of this process, whose bytes go through a pair to the program's
// fd, or directly to and from the program's memory. Order of the locks: ext.lock, the endpoint's,
// ext.cq_lock. Shared by the files of this directory.
#ifndef XSOCK_EXT_EXT_H
#define XSOCK_EXT_EXT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "anywarp/sockets.h"
#include "xsock/endpoint/ep.h"
#include "xsock/endpoint/pump.h"
#include "xsock/ext/calls.h"

#define AW_EXT_OPS_MAX 4096 /* operations whose completion the program has not taken */

/* An operation; later its completion. */
struct aw_ext_op {
	TAILQ_ENTRY(aw_ext_op) entry;
	struct aw_ext *ext;
	uint64_t cookie;
	size_t bytes; /* how many to move */
	size_t moved; /* how many were moved */
	const uint8_t *from; /* of a send */
	uint8_t *to; /* of a receive */
	uint8_t *
		copy; /* of a send, where the program's memory is not to be read any more; or NULL */
	uint32_t lkey; /* of the region of `from`, if zero_copy */
	bool zero_copy;
	/* of a send: the queue, and the parts that the endpoint has taken and not completed; under cq_lock */
	unsigned holders;
	uint64_t mark; /* of a send: the position in the pair's stream that the send follows */
	int error;
	bool silent; /* a note's send: it has no completion */
	uint8_t note[]; /* its bytes */
};

TAILQ_HEAD(aw_ext_ops, aw_ext_op);

/* connections whose bytes a reading thread takes itself */
extern _Atomic(unsigned) aw_ext_directs;

struct aw_ext {
	/* fixed after start */
	struct aw_xs_ep *ep;
	struct aw_line_ep line; /* the endpoint, as the pump sees it */
	int wake, cq_fd;
	int tcp; /* a duplicate of the TCP socket, for its options */
	ino_t ino;
	pid_t pid;
	bool peer_knows; /* the peer has the extended calls, too */

	/* under the table's lock (ext.c) */
	TAILQ_ENTRY(aw_ext) entry;
	unsigned refs; /* held by the table, the pump, each region and each call */
	/* users of the endpoint: the pump and each region; the last one closes it */
	unsigned users;
	bool has_pump;
	bool closed; /* the program has closed its last fd */

	pthread_mutex_t lock;
	struct aw_pump pump; /* between the pair and the line */
	bool out_full; /* the endpoint has no room for the pair's bytes */
	bool leaving; /* exit(3) has begun: the program writes no more than the pair holds */
	bool pump_ended;
	int error; /* the errno that the connection ended with, or 0 */
	bool error_returned;
	struct aw_ext_ops sends, recvs;
	bool asleep; /* the pump sleeps */
	/* the reasons to wake it; the pump alone writes the next three fields, and reads them without the lock */
	short far_events; /* the events that it waits for on far */
	bool serves_ep; /* it waits for the endpoint's events, too */
	int recheck_ms; /* how long it sleeps before it looks again; -1: no limit */

	/* reads that take bytes from the endpoint itself (ext_direct.c) */
	bool direct; /* the pump leaves the peer's bytes to a reading thread */
	/* the program uses the fd in ways that need the pair: no read is direct; set without a lock */
	atomic_bool polled;
	bool reading; /* a thread waits for the peer's bytes, or is about to */
	bool sent_back; /* that thread waits no longer: the pair has what comes */
	bool pair_used; /* bytes were put into the pair, and no read has found it empty since */
	uint64_t reads, reads_seen; /* how many reads could wait; at the pump's last look */

	pthread_mutex_t cq_lock;
	struct aw_ext_ops done;
	unsigned ops; /* operations of every kind, completed ones included */

	atomic_uint posted; /* Writes, Reads and parts of sends in progress */
	/* completing a post wakes the pump: a send may wait for room in the queue */
	atomic_bool wake_on_done;
};

/* Returns the connection of fd with a reference, or NULL with errno EBADF or EOPNOTSUPP. */
struct aw_ext *aw_ext_get(int fd);
/* Returns the connection whose near end has this inode with a reference, or NULL. */
struct aw_ext *aw_ext_find(ino_t ino);
/* Gives up a reference. Keeps errno. */
void aw_ext_put(struct aw_ext *ext);
/*
 * Adds a user of the endpoint, which stays open until the last user is gone. False: it is closed.
 */
bool aw_ext_use(struct aw_ext *ext);
void aw_ext_unuse(struct aw_ext *ext);

/* Sets errno and returns -1. */
static inline int aw_ext_fail(int error)
{
	errno = error;
	return -1;
}

/* ext_pump.c: moves bytes, and serves sends and receives, until nothing can move. The caller holds ext.lock. */
void aw_ext_progress(struct aw_ext *ext);
/* Called when a post completes, which was counted in ext->posted before it was made. */
void aw_ext_complete_post(struct aw_ext *ext);
/*
 * Wakes the pump if it sleeps and waits for other events than it should. The caller holds ext.lock.
 */
void aw_ext_wake(struct aw_ext *ext);
/* The pump's thread. */
void *aw_ext_pump(void *ext);
/* Fails all operations with the endpoint's error, or with result, the negative errno of a call. */
void aw_ext_fail_with(struct aw_ext *ext, ssize_t result);
/*
 * The same for a send that has failed: the program writes no more, and may read what has come before the connection's end
 * counts.
 */
void aw_ext_fail_sends(struct aw_ext *ext, ssize_t result);
/* The program's buffers are its own from now on: receives end, and sends go on from copies. The caller holds ext.lock. */
void aw_ext_let_go(struct aw_ext *ext);
/* Tells the pair that the peer sends no more, once the pair has all its bytes. */
void aw_ext_forward_end_in(struct aw_ext *ext);

/* ext_direct.c. The caller holds ext.lock. */
/* Returns whether the pair holds bytes. kind: FIONREAD: the program's, TIOCOUTQ: the peer's. */
bool aw_ext_is_queued(const struct aw_ext *ext, unsigned long kind);
/* Returns whether the endpoint takes bytes that nothing in the pair goes before. */
bool aw_ext_may_send(const struct aw_ext *ext);
/* Has the pump serve the peer's bytes again; a thread that waits for them returns to the pair. */
void aw_ext_end_direct(struct aw_ext *ext);
/* Called by the pump: slept: its last sleep has run out. Sets direct and recheck_ms. */
void aw_ext_review_direct(struct aw_ext *ext, bool slept);

/* ext_cq.c: creates an operation. NULL with errno EAGAIN (AW_EXT_OPS_MAX), ENOMEM, or EOPNOTSUPP in a child. */
struct aw_ext_op *aw_ext_op_create(struct aw_ext *ext, uint64_t cookie);
/* Creates the send of a note, which it copies. As aw_ext_op_create. */
struct aw_ext_op *aw_ext_op_create_note(struct aw_ext *ext, const void *note, size_t len);
/* Frees an operation that was not begun. */
void aw_ext_op_discard(struct aw_ext_op *op);
void aw_ext_op_free(struct aw_ext_op *op);
/* Turns the operation into its completion. The caller does not hold cq_lock. */
void aw_ext_op_complete(struct aw_ext_op *op, int error);

/*
 * ext_connect.c: connects ext's endpoint with the peer's. Takes request's tcp. Returns 0 or an
 * errno.
 */
int aw_ext_connect(struct aw_ext *ext, const struct aw_ext_request *request);

/* ext.c: called by the pump when it ends. */
void aw_ext_pump_end(struct aw_ext *ext);

ssize_t aw_ext_stream_send(int fd, const struct iovec *iov, int n, int flags);
ssize_t aw_ext_stream_recv(int fd, const struct iovec *iov, int n, int flags, bool waits);
int aw_ext_stream_wait(int fd, int64_t timeout_ns);
void aw_ext_watch(int fd);
int aw_ext_get_option(ino_t ino, int level, int name, void *value, socklen_t *len);
int aw_ext_set_option(ino_t ino, int level, int name, const void *value, socklen_t len);
#define AW_EXT_DECLARE(name) __typeof__(iwarp_##name) aw_ext_##name;
AW_EXT_PUBLIC_CALLS(AW_EXT_DECLARE)
#undef AW_EXT_DECLARE

/* ext_async.c, for ext_mr.c, too: takes and begins a send. Returns 0, or -1 with errno. */
int aw_ext_send(struct aw_ext_op *op);
/* Returns why a send fails now, or 0. The caller holds ext.lock. */
int aw_ext_send_error(const struct aw_ext *ext);
/* Queues a send behind what is in the pair. The caller holds ext.lock. */
void aw_ext_queue_send(struct aw_ext_op *op);

#endif
