// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bridge: a pump in the loop.
#include "xsock/proxy/bridge.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "xsock/endpoint/pump.h"
#include "xsock/proxy/loop.h"

#define ROUNDS_MAX 32 /* moves before the loop serves other sources */

struct aw_bridge {
	struct aw_loop_source far_source, line_source[AW_LINE_FDS];
	struct aw_bridge_start start;
	struct aw_pump pump;
	bool is_closed;
	bool is_orphan; /* the program has closed; or has shut down writing, behind the peer's end */
	size_t left; /* at the last review: bytes that the peer has yet to take */
	int64_t left_ns; /* since when they are as many; 0: no review has counted them */
};

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
	bridge->start.on_end(bridge, bridge->pump.error, bridge->start.arg);
	bridge->pump.line->ops->close(bridge->pump.line, abort);
	aw_pump_close_far(&bridge->pump);
	for (int i = 0; i < AW_LINE_FDS; i++)
		bridge->line_source[i].is_dead = true;
	aw_loop_free_later(&bridge->far_source);
}

static void bridge_free(struct aw_loop_source *source)
{
	struct aw_bridge *bridge = source->owner;

	aw_pump_fini(&bridge->pump);
	free(bridge);
}

/* Registers the line's present fds with the loop; the line may have changed them. */
static void watch_line(struct aw_bridge *bridge)
{
	struct aw_line_fd fds[AW_LINE_FDS];

	bridge->pump.line->ops->fds(bridge->pump.line, fds);
	for (int i = 0; i < AW_LINE_FDS; i++)
		(void)aw_loop_set(&bridge->line_source[i], fds[i].fd, fds[i].events);
}

/* Goes on with the line that takes the place of the present one, if any. */
static void follow_line(struct aw_bridge *bridge)
{
	struct aw_line *line = bridge->pump.line;
	struct aw_line *next = line->ops->become ? line->ops->become(line) : NULL;

	if (!next)
		return;
	unwatch_line(bridge);
	bridge->pump.line = next;
}

/*
 * Moves bytes both ways until neither side can take or give any; closes the bridge when it has ended.
 */
static void bridge_pump(struct aw_bridge *bridge)
{
	struct aw_pump *pump = &bridge->pump;

	for (int round = 0; round < ROUNDS_MAX && !bridge->is_closed; round++) {
		short ready;
		bool moved;

		follow_line(bridge);
		ready = pump->line->ops->ready(pump->line, pump->in.len);
		moved = aw_pump_out(pump, ready, SIZE_MAX);
		moved |= aw_pump_in(pump, ready);
		if (pump->starved)
			aw_loop_again(&bridge->far_source);
		aw_pump_note_failed(pump, ready);
		if (aw_pump_is_finished(pump)) {
			bridge_close(bridge, aw_pump_resets(pump));
			return;
		}
		if (moved)
			continue;
		/*
		 * The kernel's reset drops the bytes that the peer has not taken. Behind the peer's end
		 * a shutdown looks like a close, and its bytes are sent.
		 */
		if (pump->out.len && !(ready & POLLOUT) && !pump->in.eof_forwarded &&
		    aw_pump_is_aborted(pump)) {
			bridge_close(bridge, true);
			return;
		}
		if (pump->in.eof_forwarded && ready & (POLLHUP | POLLERR)) {
			unwatch_line(bridge); /* only the program's close is still to come */
			return;
		}
		watch_line(bridge);
		if (pump->line->ops->arm(pump->line))
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
	int err;

	if (!bridge)
		return ENOMEM;
	bridge->start = *start;
	bridge->pump = (struct aw_pump){
		.far = start->far,
		.line = start->line,
		.linger = start->linger,
	};
	source_init(bridge, &bridge->far_source);
	for (int i = 0; i < AW_LINE_FDS; i++)
		source_init(bridge, &bridge->line_source[i]);
	err = aw_pump_init(&bridge->pump);
	if (!err)
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
	return bridge->pump.line;
}

size_t aw_bridge_unsent(struct aw_bridge *bridge)
{
	struct aw_line *line = bridge->pump.line;
	size_t unsent = line->ops->unsent(line);
	int unread = 0;

	/* The line may have taken an event that the bridge waits for. */
	if (!line->ops->arm(line))
		aw_loop_again(&bridge->far_source);
	ioctl(bridge->pump.far, FIONREAD, &unread);
	return (size_t)unread + bridge->pump.out.len + unsent;
}

void aw_bridge_review(struct aw_bridge *bridge, int64_t now_ns)
{
	size_t left;

	if (!bridge->is_orphan || bridge->pump.in.eof_forwarded)
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
	bridge->pump.linger = *linger;
	bridge->pump.line->ops->set_linger(bridge->pump.line, linger);
}
