// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bridge. One buffer each way; a direction reads only while its buffer is empty.
#include "xsock/proxy/bridge.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_OCTETS 65536
#define ROUNDS 32 /* before others have their turn */

/* Bytes on their way in one direction. */
struct stretch {
	uint8_t *octets;
	size_t at, len;
	bool urgent; /* the one byte is out of band */
	bool eof; /* nothing follows */
	bool told; /* and the other side knows */
	bool lost; /* the other side takes nothing any more */
};

struct aw_bridge {
	struct aw_loop *loop;
	struct aw_source far_source, line_source[AW_LINE_FDS];
	struct aw_bridge_start start;
	const struct aw_line_ops *line; /* the calls of start.line */
	struct stretch out, in; /* from the program; to it */
	int error;
	bool unread; /* the program has closed without reading all: TCP resets */
	bool is_over;
};

/* A far end that is closed with bytes unread would fail the program's writes with ECONNRESET. */
static void hang_up(struct aw_bridge *bridge)
{
	shutdown(bridge->start.far, SHUT_RDWR);
	while (recv(bridge->start.far, bridge->out.octets, BUFFER_OCTETS, MSG_DONTWAIT) > 0)
		;
	close(bridge->start.far);
}

static void end(struct aw_bridge *bridge, bool abort)
{
	bridge->is_over = true;
	aw_loop_set(bridge->loop, &bridge->far_source, -1, 0);
	for (int i = 0; i < AW_LINE_FDS; i++)
		aw_loop_set(bridge->loop, &bridge->line_source[i], -1, 0);
	bridge->start.over(bridge, bridge->error, bridge->start.arg);
	bridge->line->close(bridge->start.line, abort);
	hang_up(bridge);
	for (int i = 0; i < AW_LINE_FDS; i++)
		bridge->line_source[i].is_dead = true;
	aw_loop_free_later(bridge->loop, &bridge->far_source);
}

static void free_owner(struct aw_source *source)
{
	struct aw_bridge *bridge = source->owner;

	free(bridge->in.octets);
	free(bridge->out.octets);
	free(bridge);
}

/* One recv() from the program, whose close or error it notes. */
static ssize_t receive_out(struct aw_bridge *bridge, size_t room, int flags)
{
	ssize_t got = recv(bridge->start.far, bridge->out.octets, room, flags | MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		bridge->unread |= got < 0 && errno == ECONNRESET;
		bridge->out.eof = true;
	}
	return got;
}

/*
 * Takes from the program; an urgent byte by itself. The mark is asked for once a byte is queued: an urgent byte that
 * arrived between the question and the recv() of an empty queue would be received as an ordinary one.
 */
static void fill_out(struct aw_bridge *bridge)
{
	struct stretch *out = &bridge->out;
	int urgent = 0;
	ssize_t got = receive_out(bridge, 1, MSG_PEEK);

	if (got <= 0)
		return;
	ioctl(bridge->start.far, SIOCATMARK, &urgent);
	got = receive_out(bridge, urgent ? 1 : BUFFER_OCTETS, 0);
	if (got > 0) {
		out->at = 0;
		out->len = (size_t)got;
		out->urgent = urgent;
	}
}

static bool drain_out(struct aw_bridge *bridge)
{
	struct stretch *out = &bridge->out;
	struct iovec iov = { out->octets + out->at, out->len };
	ssize_t taken = bridge->line->send(bridge->start.line, &iov, out->urgent ? MSG_OOB : 0);

	if (taken == -EOPNOTSUPP && out->urgent) { /* the peer knows of no urgent bytes */
		out->urgent = false;
		return true;
	}
	if (taken == -EAGAIN || taken == 0)
		return false;
	if (taken < 0) {
		if (taken != -EPIPE) /* a peer that reads no more may still send */
			bridge->error = (int)-taken;
		out->lost = true;
		out->len = 0;
		shutdown(bridge->start.far, SHUT_RD); /* who writes gets EPIPE */
		return true;
	}
	out->at += (size_t)taken;
	out->len -= (size_t)taken;
	return true;
}

static bool program_has_closed(const struct aw_bridge *bridge)
{
	struct pollfd pollfd = { .fd = bridge->start.far };

	return poll(&pollfd, 1, 0) > 0 && pollfd.revents & POLLHUP;
}

static bool is_reset_on_close(const struct aw_bridge *bridge)
{
	return bridge->unread || (bridge->start.linger.l_onoff && !bridge->start.linger.l_linger &&
				  program_has_closed(bridge));
}

/* Program to peer. Returns whether something has moved. */
static bool move_out(struct aw_bridge *bridge, short ready)
{
	struct stretch *out = &bridge->out;

	if (out->len)
		return drain_out(bridge);
	if (out->eof && !out->told) {
		out->told = true;
		if (!is_reset_on_close(bridge))
			bridge->line->shutdown(bridge->start.line, program_has_closed(bridge));
		return true;
	}
	if (out->eof || out->lost || !(ready & POLLOUT))
		return false;
	fill_out(bridge);
	return out->len || out->eof;
}

static void fill_in(struct aw_bridge *bridge, short ready)
{
	struct stretch *in = &bridge->in;
	struct iovec iov = { in->octets, BUFFER_OCTETS };
	bool urgent = ready & POLLPRI && bridge->line->at_mark(bridge->start.line);
	ssize_t got = bridge->line->recv(bridge->start.line, &iov, urgent ? MSG_OOB : 0);

	if (got == -EAGAIN || (got == -EINVAL && urgent))
		return;
	if (got <= 0) {
		in->eof = true;
		if (got < 0)
			bridge->error = (int)-got;
		else if (!bridge->error)
			bridge->error = bridge->line->error(bridge->start.line);
		return;
	}
	in->at = 0;
	in->len = (size_t)got;
	in->urgent = urgent;
}

static bool drain_in(struct aw_bridge *bridge)
{
	struct stretch *in = &bridge->in;
	ssize_t taken = send(bridge->start.far, in->octets + in->at, in->len,
			     MSG_DONTWAIT | MSG_NOSIGNAL | (in->urgent ? MSG_OOB : 0));

	if (taken < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (taken < 0 && in->urgent && errno == EOPNOTSUPP) { /* nor does the kernel */
		in->urgent = false;
		return true;
	}
	if (taken < 0 && (errno == ENOBUFS || errno == ENOMEM)) {
		aw_loop_again(bridge->loop, &bridge->far_source);
		return false;
	}
	if (taken < 0) { /* the program reads no more: TCP, too, takes and forgets */
		bridge->unread |= errno == ECONNRESET; /* told once: here, or to a read */
		in->lost = true;
		taken = (ssize_t)in->len;
	}
	in->at += (size_t)taken;
	in->len -= (size_t)taken;
	return true;
}

/* Peer to program. */
static bool move_in(struct aw_bridge *bridge, short ready)
{
	struct stretch *in = &bridge->in;

	if (in->len && in->lost)
		in->len = 0;
	if (in->len)
		return drain_in(bridge);
	if (in->eof && !in->told) {
		in->told = true;
		if (!bridge->error) /* an error ends both ways at once */
			shutdown(bridge->start.far, SHUT_WR);
		return true;
	}
	if (in->eof || !(ready & (POLLIN | POLLPRI | POLLRDHUP | POLLHUP | POLLERR)))
		return false;
	fill_in(bridge, ready);
	return in->len || in->eof;
}

/*
 * Over when both directions are, or the program has closed. An error ends the connection once the
 * program has been given what came before it.
 */
static bool is_finished(const struct aw_bridge *bridge)
{
	const struct stretch *in = &bridge->in, *out = &bridge->out;

	if (bridge->unread && out->told && !bridge->error &&
	    bridge->line->unsent(bridge->start.line))
		return false; /* what was written comes before the reset */
	if (out->told && !bridge->error && bridge->line->owed(bridge->start.line))
		return false;
	if (out->told && (in->told || program_has_closed(bridge)))
		return true;
	if (in->told && bridge->error)
		return true;
	return out->lost && (in->told || in->lost);
}

/* The line's fds may be others by now. */
static void follow_fds(struct aw_bridge *bridge)
{
	struct aw_line_fd fds[AW_LINE_FDS];

	bridge->line->fds(bridge->start.line, fds);
	for (int i = 0; i < AW_LINE_FDS; i++)
		(void)aw_loop_set(bridge->loop, &bridge->line_source[i], fds[i].fd, fds[i].events);
}

/* The line is ready for ever. */
static void leave_fds(struct aw_bridge *bridge)
{
	for (int i = 0; i < AW_LINE_FDS; i++)
		(void)aw_loop_set(bridge->loop, &bridge->line_source[i], -1, 0);
}

void aw_bridge_pump(struct aw_bridge *bridge)
{
	for (int round = 0; round < ROUNDS && !bridge->is_over; round++) {
		short ready = bridge->line->ready(bridge->start.line);
		bool moved = move_out(bridge, ready);

		moved |= move_in(bridge, ready);
		if (is_finished(bridge)) {
			end(bridge, is_reset_on_close(bridge));
			return;
		}
		if (moved)
			continue;
		if (bridge->in.told && ready & (POLLHUP | POLLERR)) {
			leave_fds(bridge); /* only the program is waited for */
			return;
		}
		follow_fds(bridge);
		if (bridge->line->arm(bridge->start.line))
			return;
	}
	if (!bridge->is_over)
		aw_loop_again(bridge->loop, &bridge->far_source);
}

static void ready(struct aw_source *source, uint32_t events)
{
	(void)events;
	aw_bridge_pump(source->owner);
}

static void source_init(struct aw_bridge *bridge, struct aw_source *source)
{
	source->fd = -1;
	source->owner = bridge;
	source->ready = ready;
	source->free_owner = free_owner;
}

int aw_bridge_create(struct aw_loop *loop, const struct aw_bridge_start *start,
		     struct aw_bridge **out)
{
	struct aw_bridge *bridge = calloc(1, sizeof(*bridge));
	int on = 1, err = ENOMEM;

	if (!bridge)
		return ENOMEM;
	bridge->loop = loop;
	bridge->start = *start;
	bridge->line = start->line->ops;
	bridge->in.octets = malloc(BUFFER_OCTETS);
	bridge->out.octets = malloc(BUFFER_OCTETS);
	source_init(bridge, &bridge->far_source);
	for (int i = 0; i < AW_LINE_FDS; i++)
		source_init(bridge, &bridge->line_source[i]);
	setsockopt(start->far, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	if (bridge->in.octets && bridge->out.octets)
		err = aw_loop_set(loop, &bridge->far_source, start->far,
				  EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET);
	if (err) {
		free_owner(&bridge->far_source);
		return err;
	}
	aw_loop_again(loop, &bridge->far_source);
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

size_t aw_bridge_unread(const struct aw_bridge *bridge)
{
	int unread = 0;

	ioctl(bridge->start.far, FIONREAD, &unread);
	return (size_t)unread;
}

size_t aw_bridge_unsent(const struct aw_bridge *bridge)
{
	return bridge->out.len;
}

void aw_bridge_set_linger(struct aw_bridge *bridge, const struct linger *linger)
{
	bridge->start.linger = *linger;
	bridge->line->set_linger(bridge->start.line, linger);
}
