// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each direction drains its buffer, passes the end of its stream on, or fills its buffer: one of them a call.
#include "xsock/endpoint/pump.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 65536u
/* Room for what is left behind an end: a receive ring, or TCP's receive buffer. The kernel doubles it, for its own part of each piece. */
#define LAST_BYTES (4 << 20)

int aw_pump_init(struct aw_pump *pump)
{
	int on = 1;

	setsockopt(pump->far, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	pump->in.bytes = malloc(BUFFER_BYTES);
	pump->out.bytes = malloc(BUFFER_BYTES);
	return pump->in.bytes && pump->out.bytes ? 0 : ENOMEM;
}

void aw_pump_fini(struct aw_pump *pump)
{
	free(pump->in.bytes);
	free(pump->out.bytes);
}

static void way_fill(struct aw_pump_way *way, ssize_t len, bool urgent)
{
	way->at = 0;
	way->len = (size_t)len;
	way->urgent = urgent;
}

static void way_drain(struct aw_pump_way *way, ssize_t len)
{
	way->at += (size_t)len;
	way->len -= (size_t)len;
}

bool aw_pump_is_closed(const struct aw_pump *pump)
{
	struct pollfd pollfd = { .fd = pump->far };

	return poll(&pollfd, 1, 0) > 0 && pollfd.revents & POLLHUP;
}

bool aw_pump_is_aborted(const struct aw_pump *pump)
{
	return pump->linger.l_onoff && !pump->linger.l_linger && aw_pump_is_closed(pump);
}

bool aw_pump_resets(const struct aw_pump *pump)
{
	return pump->closed_unread || aw_pump_is_aborted(pump);
}

/* Calls recv() once on the far end, and notes the program's close or an error. */
static ssize_t receive_out(struct aw_pump *pump, size_t room, int flags)
{
	ssize_t got = recv(pump->far, pump->out.bytes, room, flags | MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		pump->closed_unread |= got < 0 && errno == ECONNRESET;
		pump->out.eof = true;
	}
	return got;
}

/*
 * Receives from the program; an urgent byte is received alone. The mark is asked for once a byte is
 * queued: an urgent byte that arrived between the SIOCATMARK and the recv() of an empty queue would
 * be received as an ordinary one.
 */
static void fill_out(struct aw_pump *pump, size_t limit)
{
	int urgent = 0;
	ssize_t got;

	if (!pump->all_in_line) {
		if (receive_out(pump, 1, MSG_PEEK) <= 0)
			return;
		ioctl(pump->far, SIOCATMARK, &urgent);
	}
	got = receive_out(pump, urgent ? 1 : MIN(limit, BUFFER_BYTES), 0);
	if (got <= 0)
		return;
	way_fill(&pump->out, got, urgent);
	pump->taken += (uint64_t)got;
}

void aw_pump_refuse(struct aw_pump *pump, int error)
{
	/* After the peer's stream has ended, a read returns that end. */
	if (error != EPIPE && !pump->in.eof && !pump->error)
		pump->error = error;
	pump->out.refused = true;
	pump->out.len = 0;
	shutdown(pump->far, SHUT_RD);
}

static bool drain_out(struct aw_pump *pump)
{
	struct aw_pump_way *out = &pump->out;
	struct iovec iov = { out->bytes + out->at, out->len };
	ssize_t taken = pump->line->ops->send(pump->line, &iov, out->urgent ? MSG_OOB : 0);

	if (taken == -EAGAIN || taken == 0)
		return false;
	if (taken == -EOPNOTSUPP && out->urgent) { /* the peer supports no urgent bytes */
		out->urgent = false;
	} else if (taken < 0) {
		aw_pump_refuse(pump, (int)-taken);
	} else {
		way_drain(out, taken);
		pump->sent_after_end |= pump->in.eof_forwarded;
	}
	return true;
}

bool aw_pump_out(struct aw_pump *pump, short ready, size_t limit)
{
	struct aw_pump_way *out = &pump->out;
	int error = 0;
	socklen_t len = sizeof(error);

	if (out->len)
		return drain_out(pump);
	/* The program may close with bytes unread after it has shut down writing, when the pump receives no more from it. */
	if (out->eof && !pump->closed_unread && aw_pump_is_closed(pump) &&
	    getsockopt(pump->far, SOL_SOCKET, SO_ERROR, &error, &len) == 0)
		pump->closed_unread = error == ECONNRESET;
	/* The stream to the peer ends once the line has sent what it has taken. */
	if (out->eof && !out->eof_forwarded) {
		if (!aw_pump_resets(pump)) {
			if (pump->line->ops->owed(pump->line))
				return false;
			pump->line->ops->shutdown(pump->line, aw_pump_is_closed(pump));
		}
		out->eof_forwarded = true;
		return true;
	}
	if (out->eof || out->refused)
		return false;
	/* before the connection is established the line takes what a program has left behind */
	if (!(ready & POLLOUT) && !aw_pump_is_closed(pump))
		return false;
	fill_out(pump, limit);
	return out->len || out->eof;
}

static void fill_in(struct aw_pump *pump, short ready)
{
	struct aw_line *line = pump->line;
	struct iovec iov = { pump->in.bytes, BUFFER_BYTES };
	bool urgent = !pump->all_in_line && ready & POLLPRI && line->ops->at_mark(line);
	ssize_t got = line->ops->recv(line, &iov, urgent ? MSG_OOB : 0);

	/* the urgent byte does not come any more: the connection's end does */
	if (got == -EAGAIN && urgent && ready & (POLLHUP | POLLERR))
		got = line->ops->recv(line, &iov, 0);
	if (got == -EAGAIN || (got == -EINVAL && urgent))
		return;
	if (got > 0) {
		way_fill(&pump->in, got, urgent);
		return;
	}
	pump->in.eof = true;
	if (got < 0)
		pump->error = (int)-got;
}

/*
 * Behind the peer's end no byte comes any more, so the program's end may take all that are left: the program is told of a reset or of the
 * stream's end only behind them, and TCP tells it of either before it reads. Without CAP_NET_ADMIN the kernel makes less room
 * (net.core.wmem_max); then the rest waits until the program reads.
 */
static void make_last_room(struct aw_pump *pump)
{
	int bytes = LAST_BYTES;

	pump->has_last_room = true;
	if (setsockopt(pump->far, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
		(void)setsockopt(pump->far, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static bool drain_in(struct aw_pump *pump, short ready)
{
	struct aw_pump_way *in = &pump->in;
	ssize_t taken = send(pump->far, in->bytes + in->at, in->len,
			     MSG_DONTWAIT | MSG_NOSIGNAL | (in->urgent ? MSG_OOB : 0));

	pump->starved = taken < 0 && (errno == ENOBUFS || errno == ENOMEM);
	if (taken < 0 && errno == EAGAIN && ready & (POLLRDHUP | POLLHUP | POLLERR) &&
	    !pump->has_last_room) {
		make_last_room(pump);
		return true;
	}
	if (taken < 0 && (errno == EAGAIN || errno == EINTR || pump->starved))
		return false;
	/* this kernel has no urgent bytes on AF_UNIX */
	if (taken < 0 && in->urgent && errno == EOPNOTSUPP) {
		in->urgent = false;
		return true;
	}
	if (taken < 0) { /* the program reads no more: the bytes are dropped, as TCP does */
		/* the kernel reports it once, to a send or a receive */
		pump->closed_unread |= errno == ECONNRESET;
		in->refused = true;
		taken = (ssize_t)in->len;
	}
	way_drain(in, taken);
	return true;
}

bool aw_pump_in(struct aw_pump *pump, short ready)
{
	struct aw_pump_way *in = &pump->in;

	if (in->len && in->refused)
		in->len = 0;
	if (in->len)
		return drain_in(pump, ready);
	if (in->eof && !in->eof_forwarded) {
		in->eof_forwarded = true;
		if (!pump->error) /* after an error both directions are closed together */
			shutdown(pump->far, SHUT_WR);
		return true;
	}
	if (in->eof || !(ready & (POLLIN | POLLPRI | POLLRDHUP | POLLHUP | POLLERR)))
		return false;
	fill_in(pump, ready);
	return in->len || in->eof;
}

size_t aw_pump_take(struct aw_pump *pump, void *to, size_t len)
{
	struct aw_pump_way *in = &pump->in;

	len = MIN(len, in->len);
	memcpy(to, in->bytes + in->at, len);
	way_drain(in, (ssize_t)len);
	return len;
}

void aw_pump_note_failed(struct aw_pump *pump, short ready)
{
	bool over = ready & POLLHUP && pump->sent_after_end;

	if (!pump->in.eof_forwarded || pump->error || !(ready & (POLLHUP | POLLERR)))
		return;
	if (!over && !pump->line->ops->error(pump->line))
		return;
	pump->out.refused = true;
	pump->out.len = 0;
}

bool aw_pump_is_finished(const struct aw_pump *pump)
{
	const struct aw_pump_way *in = &pump->in, *out = &pump->out;
	struct aw_line *line = pump->line;

	if (pump->closed_unread && out->eof_forwarded && !out->refused && !pump->error &&
	    line->ops->unsent(line))
		return false; /* the written bytes are sent before the reset */
	if (out->eof_forwarded && !pump->error && line->ops->owed(line))
		return false;
	if (out->eof_forwarded && (in->eof_forwarded || aw_pump_is_closed(pump)))
		return true;
	if (in->eof_forwarded && pump->error)
		return true;
	return out->refused && (in->eof_forwarded || in->refused);
}

void aw_pump_close_far(struct aw_pump *pump)
{
	shutdown(pump->far, SHUT_RDWR);
	while (recv(pump->far, pump->out.bytes, BUFFER_BYTES, MSG_DONTWAIT) > 0)
		;
	close(pump->far);
}
