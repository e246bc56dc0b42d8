// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An extended socket: an endpoint of this process whose bytes go through a pair to the program's fd,
// or straight to and from the program's memory. Locks: ext.lock -> the endpoint's -> ext.cq_lock.
#ifndef XSOCK_EXT_EXT_H
#define XSOCK_EXT_EXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "anywarp/sockets.h"
#include "xsock/endpoint/ep.h"
#include "xsock/ext/calls.h"

#define AW_EXT_BUFFER 65536 /* bytes between the pair and the endpoint, each way */
#define AW_EXT_OPS_MAX 4096 /* operations whose completion was not taken */

/* An operation, and then its completion. */
struct aw_ext_op {
	TAILQ_ENTRY(aw_ext_op) entry;
	struct aw_ext *ext;
	uint64_t cookie;
	size_t octets; /* to move; of a completion: that were moved */
	size_t moved;
	const uint8_t *from; /* a send */
	uint8_t *to; /* a receive */
	uint32_t lkey; /* of from, if zero_copy */
	bool zero_copy;
	unsigned parts; /* zero_copy: taken by the endpoint and not done; cq_lock */
	bool all_taken; /* and nothing follows; cq_lock */
	uint64_t mark; /* a send: the bytes of the pair that go before */
	int error;
};

TAILQ_HEAD(aw_ext_ops, aw_ext_op);

struct aw_ext_buffer {
	uint8_t *octets; /* AW_EXT_BUFFER of them */
	size_t at, end;
};

struct aw_ext {
	/* fixed after start */
	struct aw_xs_ep *ep;
	int far, wake, cq_fd;
	int tcp; /* a duplicate, for its options */
	int fd; /* what the program called it at first */
	ino_t ino;
	pid_t pid;
	bool peer_knows; /* the calls, too */

	/* the table's lock (ext.c) */
	TAILQ_ENTRY(aw_ext) entry;
	unsigned refs; /* of the table, the pump, each region and each call */
	unsigned users; /* of the endpoint: the pump and each region; it is closed after the last */
	bool pumping;

	pthread_mutex_t lock;
	struct aw_ext_buffer out, in; /* towards the peer, from it */
	uint64_t taken; /* bytes out of the pair */
	bool out_ended, out_told; /* the program writes no more; the peer knows */
	bool in_ended, in_told; /* the peer writes no more; the program knows */
	bool leaving; /* exit(3): what is in the pair is all there is */
	bool over; /* the pump has ended */
	int error; /* why, or 0 */
	bool error_told;
	struct aw_ext_ops sends, recvs;
	bool asleep; /* the pump is, */
	short far_events; /* waits for this, */
	uint64_t posts_seen; /* and for the end of those until this one */

	pthread_mutex_t cq_lock;
	struct aw_ext_ops done;
	unsigned ops; /* of every kind, with those that are done */
	unsigned posted; /* Writes, Reads and parts of sends under way */
	uint64_t posts; /* that there ever were */

	atomic_bool
		wake_on_done; /* the end of one matters to the pump: a send may wait for its place */
};

/* The connection of fd, with a reference; NULL with errno EBADF or EOPNOTSUPP. */
struct aw_ext *aw_ext_get(int fd);
/* By the near end's file; NULL: there is none (any more). */
struct aw_ext *aw_ext_find(ino_t ino);
/* Keeps errno. */
void aw_ext_put(struct aw_ext *ext);
/* Keeps the endpoint. False: it is closed. */
bool aw_ext_use(struct aw_ext *ext);
void aw_ext_unuse(struct aw_ext *ext);

/* ext_pump.c: bytes go both ways until neither can. The lock is held. */
void aw_ext_progress(struct aw_ext *ext);
bool aw_ext_any_posted(struct aw_ext *ext);
/* One more, before it is posted; or one that was not. */
void aw_ext_count_post(struct aw_ext *ext, int posts);
/* One is over. */
void aw_ext_end_post(struct aw_ext *ext);
/* It is posted: who arms from here on hears of its end. */
void aw_ext_note_post(struct aw_ext *ext);
/* Wakes the pump if what it waits for is not what it should wait for. The lock is held. */
void aw_ext_wake(struct aw_ext *ext);
void *aw_ext_pump(void *ext);

/* ext_cq.c. NULL with errno EAGAIN or ENOMEM. */
struct aw_ext_op *aw_ext_op_create(struct aw_ext *ext, uint64_t cookie);
/* It was never under way. */
void aw_ext_op_discard(struct aw_ext_op *op);
/* Takes the operation; no lock but the endpoint's and above need be held. */
void aw_ext_op_complete(struct aw_ext_op *op, int error);

/* ext_connect.c: the endpoint, agreed with the peer's. Takes order's tcp. 0 or an errno. */
int aw_ext_connect(struct aw_ext *ext, const struct aw_ext_request *request);

/* ext.c: the pump's last word. */
void aw_ext_pump_over(struct aw_ext *ext);

int aw_ext_get_option(ino_t ino, int level, int name, void *value, socklen_t *len);
int aw_ext_set_option(ino_t ino, int level, int name, const void *value, socklen_t len);
int aw_ext_start(const struct aw_ext_request *request);
struct iwarp_mr *aw_ext_reg_mr(int fd, void *addr, size_t len, int access);
int aw_ext_dereg_mr(struct iwarp_mr *mr);
int aw_ext_mr_key(const struct iwarp_mr *mr, struct iwarp_key *key);
int aw_ext_write(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		 uint64_t key_offset, uint64_t cookie);
int aw_ext_read(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		uint64_t key_offset, uint64_t cookie);
int aw_ext_send_async(int fd, const void *buf, size_t len, uint64_t cookie);
int aw_ext_send_mr(struct iwarp_mr *mr, size_t offset, size_t len, uint64_t cookie);
int aw_ext_recv_async(int fd, void *buf, size_t len, uint64_t cookie);
int aw_ext_cq_fd(int fd);
int aw_ext_cq_poll(int fd, struct iwarp_completion *completions, int n);

/* A send of memory that may be registered: ext_async.c, for ext_mr.c. */
int aw_ext_send(struct aw_ext *ext, const struct aw_ext_op *like);

#endif
