// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bridge. Each direction has one buffer and reads only while its buffer is empty.
#include "xsock/proxy/bridge.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xsock/proxy/loop.h"

#define BUFFER_BYTES 65536
#define ROUNDS_MAX 32 /* moves before the loop serves other sources */

/* The buffer and the state of one direction. */
struct direction {
	uint8_t *bytes;
	size_t at, len;
	bool urgent; /* the buffer holds one byte, which is urgent */
	bool eof; /* the source of this direction has ended */
	bool eof_forwarded; /* the other side was shut down for writing */
	bool refused; /* the other side takes no more bytes */
};

struct aw_bridge {
	struct aw_loop_source far_source, line_source[AW_LINE_FDS];
	struct aw_bridge_start start;
	const struct aw_line_ops *line; /* start.line's functions */
	struct direction out, in; /* out: from the program; in: to the program */
	int error;
	bool closed_unread; /* the program has closed with bytes unread: TCP resets then */
	bool sent_after_end; /* the line has taken bytes after the peer's stream ended */
	bool is_closed;
	bool is_orphan; /* the program has closed; or has shut down writing, behind the peer's end */
	size_t left; /* at the last review: bytes that the peer has yet to take */
	int64_t left_ns; /* since when they are as many; 0: no review has counted them */
};

/*
 * Closes the far end. The bridge first receives what the program has written: closing the far end
 * with bytes unread would fail the program's next write with ECONNRESET instead of EPIPE.
 */
static void close_far(struct aw_bridge *bridge)
{
	shutdown(bridge->start.far, SHUT_RDWR);
	while (recv(bridge->start.far, bridge->out.bytes, BUFFER_BYTES, MSG_DONTWAIT) > 0)
		;
	close(bridge->start.far);
}

/* Unregisters the line's fds. A line that has ended reports readiness for ever. */
static void unwatch_line(struct aw_bridge *bridge)
{
	for (int i = 0; i < AW_LINE_FDS; i++)
		(void)aw_loop_set(&bridge->line_source[i], -1, 0);
}

static void bridge_close(struct aw_bridge *bridge, bool abort)
{
	bridge->is_closed = true;
	aw_loop_set(&bridge->far_source, -1, 0);
	unwatch_line(bridge);
	bridge->start.on_end(bridge, bridge->error, bridge->start.arg);
	bridge->line->close(bridge->start.line, abort);
	close_far(bridge);
	for (int i = 0; i < AW_LINE_FDS; i++)
		bridge->line_source[i].is_dead = true;
	aw_loop_free_later(&bridge->far_source);
}

static void bridge_free(struct aw_loop_source *source)
{
	struct aw_bridge *bridge = source->owner;

	free(bridge->in.bytes);
	free(bridge->out.bytes);
	free(bridge);
}

/* Calls recv() once on the far end, and notes the program's close or an error. */
static ssize_t receive_out(struct aw_bridge *bridge, size_t room, int flags)
{
	ssize_t got = recv(bridge->start.far, bridge->out.bytes, room, flags | MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		bridge->closed_unread |= got < 0 && errno == ECONNRESET;
		bridge->out.eof = true;
	}
	return got;
}

/*
 * Receives from the program; an urgent byte is received alone. The mark is asked for once a byte is
 * queued: an urgent byte that arrived between the SIOCATMARK and the recv() of an empty queue would
 * be received as an ordinary one.
 */
static void fill_out(struct aw_bridge *bridge)
{
	struct direction *out = &bridge->out;
	int urgent = 0;
	ssize_t got = receive_out(bridge, 1, MSG_PEEK);

	if (got <= 0)
		return;
	ioctl(bridge->start.far, SIOCATMARK, &urgent);
	got = receive_out(bridge, urgent ? 1 : BUFFER_BYTES, 0);
	if (got > 0) {
		out->at = 0;
		out->len = (size_t)got;
		out->urgent = urgent;
	}
}

static bool drain_out(struct aw_bridge *bridge)
{
	struct direction *out = &bridge->out;
	struct iovec iov = { out->bytes + out->at, out->len };
	ssize_t taken = bridge->line->send(bridge->start.line, &iov, out->urgent ? MSG_OOB : 0);

	if (taken == -EOPNOTSUPP && out->urgent) { /* the peer supports no urgent bytes */
		out->urgent = false;
		return true;
	}
	if (taken == -EAGAIN || taken == 0)
		return false;
	if (taken < 0) {
		/*
		 * EPIPE is no error: a peer that reads no more may still send. After the peer's
		 * stream has ended, a read returns that end.
		 */
		if (taken != -EPIPE && !bridge->in.eof)
			bridge->error = (int)-taken;
		out->refused = true;
		out->len = 0;
		/* the program's next write fails with EPIPE */
		shutdown(bridge->start.far, SHUT_RD);
		return true;
	}
	out->at += (size_t)taken;
	out->len -= (size_t)taken;
	bridge->sent_after_end |= bridge->in.eof_forwarded;
	return true;
}

static bool program_has_closed(const struct aw_bridge *bridge)
{
	struct pollfd pollfd = { .fd = bridge->start.far };

	return poll(&pollfd, 1, 0) > 0 && pollfd.revents & POLLHUP;
}

static bool has_closed_by_reset(const struct aw_bridge *bridge)
{
	return bridge->start.linger.l_onoff && !bridge->start.linger.l_linger &&
	       program_has_closed(bridge);
}

static bool is_reset_on_close(const struct aw_bridge *bridge)
{
	return bridge->closed_unread || has_closed_by_reset(bridge);
}

/*
 * Notes a close with bytes unread after the program had shut down writing, when the bridge receives
 * no more from the program.
 */
static void note_closed_unread(struct aw_bridge *bridge)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (!bridge->closed_unread && program_has_closed(bridge) &&
	    getsockopt(bridge->start.far, SOL_SOCKET, SO_ERROR, &error, &len) == 0)
		bridge->closed_unread = error == ECONNRESET;
}

/* Ends the stream to the peer, once the line has sent what it has taken. Returns whether it did. */
static bool forward_out_eof(struct aw_bridge *bridge)
{
	if (!is_reset_on_close(bridge)) {
		if (bridge->line->owed(bridge->start.line))
			return false;
		bridge->line->shutdown(bridge->start.line, program_has_closed(bridge));
	}
	bridge->out.eof_forwarded = true;
	return true;
}

/* Moves bytes from the program to the peer. Returns whether anything moved. */
static bool move_out(struct aw_bridge *bridge, short ready)
{
	struct direction *out = &bridge->out;

	if (out->len)
		return drain_out(bridge);
	if (out->eof)
		note_closed_unread(bridge);
	if (out->eof && !out->eof_forwarded)
		return forward_out_eof(bridge);
	if (out->eof || out->refused)
		return false;
	/* before the connection is established the line takes what a program has left behind */
	if (!(ready & POLLOUT) && !program_has_closed(bridge))
		return false;
	fill_out(bridge);
	return out->len || out->eof;
}

static void fill_in(struct aw_bridge *bridge, short ready)
{
	struct direction *in = &bridge->in;
	struct iovec iov = { in->bytes, BUFFER_BYTES };
	bool urgent = ready & POLLPRI && bridge->line->at_mark(bridge->start.line);
	ssize_t got = bridge->line->recv(bridge->start.line, &iov, urgent ? MSG_OOB : 0);

	/* the urgent byte does not come any more: the connection's end does */
	if (got == -EAGAIN && urgent && ready & (POLLHUP | POLLERR))
		got = bridge->line->recv(bridge->start.line, &iov, 0);
	if (got == -EAGAIN || (got == -EINVAL && urgent))
		return;
	if (got <= 0) {
		in->eof = true;
		if (got < 0)
			bridge->error = (int)-got;
		return;
	}
	in->at = 0;
	in->len = (size_t)got;
	in->urgent = urgent;
}

static bool drain_in(struct aw_bridge *bridge)
{
	struct direction *in = &bridge->in;
	ssize_t taken = send(bridge->start.far, in->bytes + in->at, in->len,
			     MSG_DONTWAIT | MSG_NOSIGNAL | (in->urgent ? MSG_OOB : 0));

	if (taken < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	/* this kernel has no urgent bytes on AF_UNIX */
	if (taken < 0 && in->urgent && errno == EOPNOTSUPP) {
		in->urgent = false;
		return true;
	}
	if (taken < 0 && (errno == ENOBUFS || errno == ENOMEM)) {
		aw_loop_again(&bridge->far_source);
		return false;
	}
	if (taken < 0) { /* the program reads no more: the bytes are dropped, as TCP does */
		/* the kernel reports it once, to a send or a receive */
		bridge->closed_unread |= errno == ECONNRESET;
		in->refused = true;
		taken = (ssize_t)in->len;
	}
	in->at += (size_t)taken;
	in->len -= (size_t)taken;
	return true;
}

/* Moves bytes from the peer to the program. Returns whether anything moved. */
static bool move_in(struct aw_bridge *bridge, short ready)
{
	struct direction *in = &bridge->in;

	if (in->len && in->refused)
		in->len = 0;
	if (in->len)
		return drain_in(bridge);
	if (in->eof && !in->eof_forwarded) {
		in->eof_forwarded = true;
		if (!bridge->error) /* after an error the bridge closes both directions together */
			shutdown(bridge->start.far, SHUT_WR);
		return true;
	}
	if (in->eof || !(ready & (POLLIN | POLLPRI | POLLRDHUP | POLLHUP | POLLERR)))
		return false;
	fill_in(bridge, ready);
	return in->len || in->eof;
}

/*
 * Ends the program's direction if the connection has failed after the peer's stream ended. As with
 * TCP, a read still returns the stream's end, poll(2) reports POLLHUP, and a write fails with EPIPE.
 * A peer that closes in order after that end may not have read what was sent meanwhile: TCP would
 * then have a reset, and an endpoint cannot see the difference.
 */
static void note_failed(struct aw_bridge *bridge, short ready)
{
	bool over = ready & POLLHUP && bridge->sent_after_end;

	if (!bridge->in.eof_forwarded || bridge->error || !(ready & (POLLHUP | POLLERR)))
		return;
	if (!over && !bridge->line->error(bridge->start.line))
		return;
	bridge->out.refused = true;
	bridge->out.len = 0;
}

/*
 * Returns whether the bridge has ended: both directions have ended, or the program has closed.
 * After an error the bridge ends once the program has received the bytes that came before the
 * error.
 */
static bool is_finished(const struct aw_bridge *bridge)
{
	const struct direction *in = &bridge->in, *out = &bridge->out;

	if (bridge->closed_unread && out->eof_forwarded && !out->refused && !bridge->error &&
	    bridge->line->unsent(bridge->start.line))
		return false; /* the written bytes are sent before the reset */
	if (out->eof_forwarded && !bridge->error && bridge->line->owed(bridge->start.line))
		return false;
	if (out->eof_forwarded && (in->eof_forwarded || program_has_closed(bridge)))
		return true;
	if (in->eof_forwarded && bridge->error)
		return true;
	return out->refused && (in->eof_forwarded || in->refused);
}

/* Registers the line's present fds with the loop; the line may have changed them. */
static void watch_line(struct aw_bridge *bridge)
{
	struct aw_line_fd fds[AW_LINE_FDS];

	bridge->line->fds(bridge->start.line, fds);
	for (int i = 0; i < AW_LINE_FDS; i++)
		(void)aw_loop_set(&bridge->line_source[i], fds[i].fd, fds[i].events);
}

/* Goes on with the line that takes the place of the present one, if any. */
static void follow_line(struct aw_bridge *bridge)
{
	struct aw_line *next = bridge->line->become ? bridge->line->become(bridge->start.line)
						    : NULL;

	if (!next)
		return;
	unwatch_line(bridge);
	bridge->start.line = next;
	bridge->line = next->ops;
}

/*
 * Moves bytes both ways until neither side can take or give any; closes the bridge when it has ended.
 */
static void bridge_pump(struct aw_bridge *bridge)
{
	for (int round = 0; round < ROUNDS_MAX && !bridge->is_closed; round++) {
		short ready;
		bool moved;

		follow_line(bridge);
		ready = bridge->line->ready(bridge->start.line, bridge->in.len);
		moved = move_out(bridge, ready);

		moved |= move_in(bridge, ready);
		note_failed(bridge, ready);
		if (is_finished(bridge)) {
			bridge_close(bridge, is_reset_on_close(bridge));
			return;
		}
		if (moved)
			continue;
		/*
		 * The kernel's reset drops the bytes that the peer has not taken. Behind the peer's end
		 * a shutdown looks like a close, and its bytes are sent.
		 */
		if (bridge->out.len && !(ready & POLLOUT) && !bridge->in.eof_forwarded &&
		    has_closed_by_reset(bridge)) {
			bridge_close(bridge, true);
			return;
		}
		if (bridge->in.eof_forwarded && ready & (POLLHUP | POLLERR)) {
			unwatch_line(bridge); /* only the program's close is still to come */
			return;
		}
		watch_line(bridge);
		if (bridge->line->arm(bridge->start.line))
			return;
	}
	if (!bridge->is_closed)
		aw_loop_again(&bridge->far_source);
}

static void bridge_ready(struct aw_loop_source *source, uint32_t events)
{
	struct aw_bridge *bridge = source->owner;

	bridge->is_orphan |= source == &bridge->far_source && events & EPOLLHUP;
	bridge_pump(bridge);
}

static void source_init(struct aw_bridge *bridge, struct aw_loop_source *source)
{
	source->fd = -1;
	source->owner = bridge;
	source->ready = bridge_ready;
	source->free_owner = bridge_free;
}

int aw_bridge_create(const struct aw_bridge_start *start, struct aw_bridge **out)
{
	struct aw_bridge *bridge = calloc(1, sizeof(*bridge));
	int on = 1, err = ENOMEM;

	if (!bridge)
		return ENOMEM;
	bridge->start = *start;
	bridge->line = start->line->ops;
	bridge->in.bytes = malloc(BUFFER_BYTES);
	bridge->out.bytes = malloc(BUFFER_BYTES);
	source_init(bridge, &bridge->far_source);
	for (int i = 0; i < AW_LINE_FDS; i++)
		source_init(bridge, &bridge->line_source[i]);
	setsockopt(start->far, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	if (bridge->in.bytes && bridge->out.bytes)
		err = aw_loop_set(&bridge->far_source, start->far,
				  EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET);
	if (err) {
		bridge_free(&bridge->far_source);
		return err;
	}
	aw_loop_again(&bridge->far_source);
	*out = bridge;
	return 0;
}

int aw_bridge_tcp(const struct aw_bridge *bridge)
{
	const struct stat *file = &bridge->start.tcp_file;
	struct stat now;

	return fstat(bridge->start.tcp, &now) == 0 && now.st_dev == file->st_dev &&
			       now.st_ino == file->st_ino
		       ? bridge->start.tcp
		       : -1;
}

struct aw_line *aw_bridge_line(const struct aw_bridge *bridge)
{
	return bridge->start.line;
}

size_t aw_bridge_unsent(struct aw_bridge *bridge)
{
	size_t unsent = bridge->line->unsent(bridge->start.line);
	int unread = 0;

	/* The line may have taken an event that the bridge waits for. */
	if (!bridge->line->arm(bridge->start.line))
		aw_loop_again(&bridge->far_source);
	ioctl(bridge->start.far, FIONREAD, &unread);
	return (size_t)unread + bridge->out.len + unsent;
}

void aw_bridge_review(struct aw_bridge *bridge, int64_t now_ns)
{
	size_t left;

	if (!bridge->is_orphan || bridge->in.eof_forwarded)
		return;
	left = aw_bridge_unsent(bridge);
	if (!bridge->left_ns || left != bridge->left) {
		bridge->left = left;
		bridge->left_ns = now_ns;
	} else if (now_ns - bridge->left_ns >= AW_BRIDGE_STALL_MS * INT64_C(1000000)) {
		bridge_close(bridge, true);
	}
}

void aw_bridge_set_linger(struct aw_bridge *bridge, const struct linger *linger)
{
	bridge->start.linger = *linger;
	bridge->line->set_linger(bridge->start.line, linger);
}
