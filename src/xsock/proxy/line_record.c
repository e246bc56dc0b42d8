// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record as a bridge's line; the record is in the state that its program has left it in. Other
// processes that hold the slot follow to the bridge by their next call on the connection: the line
// keeps the pair's near end for them. A thread that sleeps on the TCP socket makes that call when
// it sees bytes there; bytes that the line has put into the pair therefore stay in the TCP socket, too,
// until a program has read them from the pair. The line takes the slot's locks without waiting for long.
#include "xsock/proxy/line_record.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "xsock/base/sockopt.h"
#include "xsock/base/startup_time.h"
#include "xsock/framed/bridged.h"
#include "xsock/framed/calls.h"
#include "xsock/proxy/closer.h"

#define MS INT64_C(1000000)
#define NS (1000 * MS)
/* a process holds a half's lock for less than that, unless the process is stopped */
#define LOCK_NS MS
#define AGAIN_MS 2
#define AGAIN_MS_MAX 128 /* pauses grow to that, between looks that find nothing new */
#define ENDS (POLLHUP | POLLERR)
#define FPDU_SHARE 48 /* no byte of payload has as many bytes of its FPDU, or of its TLS record */
#define SPARE_MIN 4096

struct line_record {
	struct aw_line line;
	struct aw_line_record_start start;
	int timer;
	int near_ms; /* the pause before the next look whether other processes hold the slot */
	int rx_ms, tx_ms; /* the pause before the next try of a half's lock */
	int queued; /* bytes in TCP's queue at the last look */
	int queued_ms; /* the pause before the next look at that queue */
	bool is_read; /* the program has read from the pair */
	int64_t until_ns; /* the program's stream has ended before the Reply, which is waited for until then; 0: not so */
	struct aw_xs_stats stats;
};

static struct line_record *record_of(struct aw_line *line)
{
	return (struct line_record *)line;
}

/*
 * Arms the timer, one of the line's fds, for another look, and makes the pause before the one after it longer. A timer that
 * is due sooner stays as it is.
 */
static void look_later(struct line_record *r, int *pause_ms)
{
	const struct itimerspec then = { .it_value.tv_nsec = *pause_ms * MS };
	struct itimerspec due = { 0 };

	(void)timerfd_gettime(r->timer, &due);
	if (!due.it_value.tv_sec &&
	    (!due.it_value.tv_nsec || due.it_value.tv_nsec > *pause_ms * MS))
		(void)timerfd_settime(r->timer, 0, &then, NULL);
	*pause_ms = *pause_ms < AGAIN_MS_MAX ? 2 * *pause_ms : AGAIN_MS_MAX;
}

/*
 * Closes the line's copy of the near end once no other process holds the slot. While the copy is
 * open, the far end does not show that the program has closed its near end; the line therefore
 * looks again and again.
 */
static void near_review(struct line_record *r)
{
	if (r->start.near < 0)
		return;
	if (!aw_share_is_alone(&r->start.share)) {
		look_later(r, &r->near_ms);
		return;
	}
	close(r->start.near);
	r->start.near = -1;
}

int aw_line_record_near(const struct aw_line *line)
{
	return ((const struct line_record *)line)->start.near;
}

/*
 * Locks a half of the record. Returns 0, or a negative errno; -EAGAIN: another process holds the
 * lock. Where that process has not given it back in time, it may be stopped: the loop's other
 * connections then wait no more, and the lock is only tried until it is free.
 */
static int half_lock(struct line_record *r, pthread_mutex_t *lock)
{
	struct aw_slot *slot = r->start.share.slot;
	int *pause_ms = lock == &slot->rx_lock ? &r->rx_ms : &r->tx_ms;
	int64_t by_ns = aw_now_ns() + (*pause_ms == AGAIN_MS ? LOCK_NS : 0);
	struct timespec by = { by_ns / NS, by_ns % NS };
	int err = aw_slot_lock(slot, lock, r->start.tcp, &by);

	if (err == ETIMEDOUT) {
		look_later(r, pause_ms);
		return -EAGAIN;
	}
	*pause_ms = AGAIN_MS;
	return -err;
}

static ssize_t record_send(struct aw_line *line, const struct iovec *iov, int flags)
{
	struct line_record *r = record_of(line);
	struct aw_slot *slot = r->start.share.slot;
	ssize_t n;

	n = half_lock(r, &slot->tx_lock);
	if (n)
		return n;
	n = aw_record_send(&slot->record, r->start.tcp, iov, 1, flags & MSG_OOB);
	pthread_mutex_unlock(&slot->tx_lock);
	r->stats.bytes_out += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* Sends the Terminate for an error of the peer's. */
static void record_terminate(struct line_record *r)
{
	struct aw_slot *slot = r->start.share.slot;

	if (half_lock(r, &slot->tx_lock) != 0)
		return;
	aw_record_end(&slot->record, r->start.tcp);
	pthread_mutex_unlock(&slot->tx_lock);
}

/*
 * Receives. Where a thread may sleep on the TCP socket, the socket stays readable: it has more bytes, or what is received
 * stays there until drop_given.
 */
static ssize_t receive_bytes(struct line_record *r, struct iovec *iov)
{
	struct aw_slot *slot = r->start.share.slot;
	struct aw_record *record = &slot->record;
	/* A thread may sleep there: of another process, or one that did so when the bridge began. */
	bool leaves = r->start.near >= 0 || (r->start.threads && !r->is_read) ||
		      atomic_load(&slot->readers);
	int queued = 0;
	ssize_t n = 0;

	/*
	 * Of many bytes that are queued a part can be received, and the socket stays readable: a byte has 28 of FPDU, or 44 of a TLS record. Not so
	 * while a thread that does not know of the bridge may read it: what it took would come before what is in the pair.
	 */
	if (leaves && !atomic_load(&slot->readers) &&
	    (r->start.near < 0 || atomic_load(&slot->proxy)))
		(void)ioctl(r->start.tcp, FIONREAD, &queued);
	if ((size_t)queued >= SPARE_MIN * FPDU_SHARE)
		iov->iov_len = MIN(iov->iov_len, (size_t)queued / FPDU_SHARE);
	else if (leaves)
		n = aw_record_peek(record, r->start.tcp, iov, 1, NULL);
	/* Bytes that have come since the look are for the next one. */
	if (n == -EAGAIN && record->rx.mark == AW_MARK_NONE)
		return n;
	if (n <= 0)
		return aw_record_receive(record, r->start.tcp, iov, 1, 0);
	slot->given = (uint32_t)n;
	return n;
}

static ssize_t record_recv(struct aw_line *line, const struct iovec *iov, int flags)
{
	struct line_record *r = record_of(line);
	struct aw_slot *slot = r->start.share.slot;
	struct aw_record *record = &slot->record;
	struct iovec room = *iov;
	bool faulty;
	ssize_t n;

	n = half_lock(r, &slot->rx_lock);
	if (n)
		return n;
	if (!(flags & MSG_OOB)) {
		n = receive_bytes(r, &room);
	} else if (record->rx.in_line) {
		/* With SO_OOBINLINE on, the record's next byte is the urgent one. */
		room.iov_len = 1;
		n = aw_record_receive(record, r->start.tcp, &room, 1, 0);
	} else {
		n = aw_record_receive_urgent(record, r->start.tcp, iov->iov_base, 0);
	}
	faulty = record->rx.fault != AW_OK;
	pthread_mutex_unlock(&slot->rx_lock);
	if (faulty)
		record_terminate(r);
	if (n > 0)
		r->stats.bytes_in += (uint64_t)n;
	else if (n != -EAGAIN)
		r->stats.state = n ? AW_XS_FAILED : AW_XS_CLOSED;
	return n;
}

/* Takes the Reply if it is there. Returns whether it is still due. */
static bool is_unanswered(struct line_record *r)
{
	struct aw_slot *slot = r->start.share.slot;
	bool due;

	if (!slot->record.rx.reply_due || half_lock(r, &slot->rx_lock) != 0)
		return slot->record.rx.reply_due;
	due = !aw_record_take_answer(&slot->record, r->start.tcp);
	pthread_mutex_unlock(&slot->rx_lock);
	return due;
}

/* Returns whether the connection has ended in both directions; TCP sends no more then. */
static bool has_failed(int tcp)
{
	struct pollfd pollfd = { .fd = tcp };

	return poll(&pollfd, 1, 0) > 0 && pollfd.revents & ENDS;
}

/* Flushes the record. Returns the bytes of an FPDU that TCP has yet to take; 1 where the Reply may cross the stream's end. */
static size_t record_owed(struct aw_line *line)
{
	struct line_record *r = record_of(line);
	struct aw_slot *slot = r->start.share.slot;
	struct aw_record_tx *tx = &slot->record.tx;
	pthread_mutex_t *lock = &slot->tx_lock;
	int err = half_lock(r, lock);
	size_t rest;

	if (err)
		return err == -EAGAIN;
	err = aw_record_flush(&slot->record, r->start.tcp);
	rest = err == -EAGAIN && !tx->reply ? tx->rest : 0;
	pthread_mutex_unlock(lock);
	if (rest)
		return rest;

	/*
	 * The program's stream may have ended while the server may still send its Reply, because the two cross: to a Reply that
	 * came to a closed socket the kernel would send a reset, and drop what it has yet to send.
	 */
	if (!r->until_ns || !is_unanswered(r) || has_failed(r->start.tcp) ||
	    aw_now_ns() >= r->until_ns)
		return 0;
	look_later(r, &r->queued_ms);
	return 1;
}

static size_t record_unsent(struct aw_line *line)
{
	struct line_record *r = record_of(line);
	size_t rest = record_owed(line);
	int queued = 0;

	if (has_failed(r->start.tcp))
		return 0;
	/* No event tells that the peer's TCP has received the bytes. */
	(void)ioctl(r->start.tcp, SIOCOUTQ, &queued);
	if (queued != r->queued)
		r->queued_ms = AGAIN_MS;
	r->queued = queued;
	if (queued)
		look_later(r, &r->queued_ms);
	return rest + (size_t)queued;
}

/*
 * Under TLS sends close_notify. Returns whether it is behind the rest of an FPDU that TCP has yet to take: record_owed sends both, and
 * TCP's end then.
 */
static bool is_end_behind_rest(struct line_record *r)
{
	struct aw_slot *slot = r->start.share.slot;
	struct aw_record_tx *tx = &slot->record.tx;
	bool due;

	if (!aw_key_is_on(&tx->key) || half_lock(r, &slot->tx_lock) != 0)
		return false;
	due = aw_record_finish(&slot->record, r->start.tcp) == -EAGAIN;
	tx->ended |= due;
	tx->fin_due |= due;
	pthread_mutex_unlock(&slot->tx_lock);
	return due;
}

/*
 * Shuts down writing, unless the program has closed and the Reply has come: the kernel ends the stream when the last
 * process closes the TCP socket. While the line keeps the near end, what looks like a close is a
 * shutdown of both directions.
 */
static void record_shutdown(struct aw_line *line, bool closed)
{
	struct line_record *r = record_of(line);

	if (is_end_behind_rest(r))
		return;
	if (is_unanswered(r) && aw_share_is_alone(&r->start.share))
		r->until_ns = aw_now_ns() + AW_PEER_STARTUP_MS * INT64_C(1000000);
	else if (closed && r->start.near < 0)
		return;
	(void)shutdown(r->start.tcp, SHUT_WR);
	aw_bridged_give_linger(r->start.share.slot, r->start.tcp);
}

void aw_line_record_free(struct aw_line *line)
{
	struct line_record *r = record_of(line);

	if (!r)
		return;
	aw_bridged_end(r->start.share.slot, r->start.tcp);
	close(r->timer);
	free(r);
}

static void record_close(struct aw_line *line, bool abort)
{
	static const struct linger at_once = { .l_onoff = 1 };
	struct aw_line_record_start start = record_of(line)->start;

	aw_line_record_free(line);
	if (abort && aw_share_is_alone(&start.share))
		(void)setsockopt(start.tcp, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	aw_share_put(&start.share);
	if (start.near >= 0)
		close(start.near);
	aw_closer_close(start.tcp);
}

/*
 * Returns whether the program has yet to read what the bridge has given it. The kernel counts one byte of what was read until it
 * has told of the room (sock_wfree); no bytes that wait count for one alone.
 */
static bool is_full(const struct line_record *r)
{
	int queued = 0;

	return ioctl(r->start.far, SIOCOUTQ, &queued) == 0 && queued > 1;
}

/* Drops the bytes that are in the pair as well. */
static void drop_given(struct line_record *r)
{
	static uint8_t bytes[65536];
	struct aw_slot *slot = r->start.share.slot;
	bool faulty;

	if (half_lock(r, &slot->rx_lock) != 0)
		return;
	while (slot->given > 0) {
		struct iovec iov = { bytes, MIN(slot->given, sizeof(bytes)) };
		ssize_t n = aw_record_receive(&slot->record, r->start.tcp, &iov, 1, 0);

		slot->given -= n > 0 ? (uint32_t)n : slot->given;
	}
	faulty = slot->record.rx.fault != AW_OK;
	pthread_mutex_unlock(&slot->rx_lock);
	if (faulty)
		record_terminate(r);
	r->is_read = true;
}

static short record_ready(struct aw_line *line, size_t undelivered)
{
	struct line_record *r = record_of(line);
	struct pollfd pollfd = { .fd = r->start.tcp,
				 .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP };

	near_review(r);
	(void)record_owed(line);
	(void)poll(&pollfd, 1, 0);
	/*
	 * The bytes that are in the pair as well stay until a program has read them there, unless something behind them is to be told before.
	 * The stream's end, too, wakes the threads that sleep.
	 */
	if (r->start.share.slot->given > 0) {
		if (!undelivered && (pollfd.revents & (POLLPRI | POLLRDHUP | ENDS) || !is_full(r)))
			drop_given(r);
		if (r->start.share.slot->given > 0)
			return (short)(pollfd.revents &
				       (undelivered ? POLLOUT | POLLRDHUP | ENDS : POLLOUT));
		(void)poll(&pollfd, 1, 0);
	}
	/* while the line keeps the near end, the bridge still waits for the other processes */
	if (r->start.near >= 0 && pollfd.revents & ENDS)
		pollfd.revents = (short)((pollfd.revents & ~POLLHUP) | POLLIN | POLLRDHUP);
	return pollfd.revents;
}

/*
 * Returns true: the fds are edge-triggered, so that the next epoll_wait reports what has come
 * meanwhile.
 */
static bool record_arm(struct aw_line *line)
{
	(void)line;
	return true;
}

static void record_fds(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS])
{
	const struct line_record *r = record_of(line);

	fds[0] = (struct aw_line_fd){ r->start.tcp,
				      EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	fds[1] = (struct aw_line_fd){ r->timer, EPOLLIN | EPOLLET };
}

static int record_error(struct aw_line *line)
{
	return aw_sockopt_int(record_of(line)->start.tcp, SOL_SOCKET, SO_ERROR, 0);
}

static bool record_at_mark(struct aw_line *line)
{
	struct line_record *r = record_of(line);
	struct aw_slot *slot = r->start.share.slot;
	bool at_mark;

	if (half_lock(r, &slot->rx_lock) != 0)
		return false;
	at_mark = aw_record_is_at_mark(&slot->record, r->start.tcp);
	pthread_mutex_unlock(&slot->rx_lock);
	return at_mark;
}

static void record_set_option(struct aw_line *line, int level, int name, int value)
{
	(void)setsockopt(record_of(line)->start.tcp, level, name, &value, sizeof(value));
}

static void record_set_linger(struct aw_line *line, const struct linger *linger)
{
	struct line_record *r = record_of(line);

	if (!aw_bridged_set_linger(r->start.share.slot, linger))
		(void)setsockopt(r->start.tcp, SOL_SOCKET, SO_LINGER, linger, sizeof(*linger));
}

static void record_stats(struct aw_line *line, struct aw_xs_stats *stats)
{
	*stats = record_of(line)->stats;
}

struct aw_line *aw_line_of_record(const struct aw_line_record_start *start)
{
	static const struct aw_line_ops ops = {
		.send = record_send,
		.recv = record_recv,
		.shutdown = record_shutdown,
		.close = record_close,
		.ready = record_ready,
		.fds = record_fds,
		.arm = record_arm,
		.error = record_error,
		.at_mark = record_at_mark,
		.unsent = record_unsent,
		.owed = record_owed,
		.set_option = record_set_option,
		.set_linger = record_set_linger,
		.stats = record_stats,
	};
	struct line_record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->timer < 0) {
		free(r);
		return NULL;
	}
	r->line.ops = &ops;
	r->start = *start;
	r->near_ms = r->rx_ms = r->tx_ms = r->queued_ms = AGAIN_MS;
	r->stats.state = AW_XS_ESTABLISHED;
	r->stats.anywarp_peer = true;
	aw_bridged_begin(start->share.slot, start->share.fd, start->share.number, start->tcp);
	return &r->line;
}
