// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A will waits for its program to let go of the lifeline, and is then executed on the TCP socket: the last message,
// FIN, and the peer's octets dropped until its FIN comes, since a socket closed before would reset. The page is read,
// not mapped: its program may cut it off or change it at any time.
#include "xsock/keeper/wills.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xsock/ep_impl.h"
#include "xsock/keeper/closer.h"
#include "xsock/msg.h"
#include "xsock/preload/say.h"
#include "xsock/will.h"

#define LAST_OCTETS 64 /* an FPDU of a message is shorter */
#define DROP_OCTETS (1 << 20) /* at a time */
#define DROPS_MAX 16 /* a turn: other connections have theirs */
#define EXECUTION_S 60 /* a peer that takes no more, or never ends */

struct will {
	struct will *next;
	struct aw_loop *loop;
	struct aw_source lifeline, tcp;
	int socket;
	int memory; /* the page */
	uint64_t ino;
	pid_t pid; /* the program, and its fd, as at first */
	int fd;
	uint8_t mode;
	struct sockaddr_storage remote;
	uint8_t last[LAST_OCTETS];
	size_t at, len; /* of last */
	bool shut;
	time_t until; /* once it is executed */
};

static struct will *wills;
static size_t count;

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void bury(struct aw_source *source)
{
	free(source->owner);
}

static void drop(struct will *will)
{
	struct will **at = &wills;
	int lifeline = will->lifeline.fd;

	while (*at != will)
		at = &(*at)->next;
	*at = will->next;
	count--;
	aw_loop_set(will->loop, &will->lifeline, -1, 0);
	aw_loop_set(will->loop, &will->tcp, -1, 0);
	if (lifeline >= 0)
		close(lifeline);
	aw_closer_close(will->socket);
	close(will->memory);
	will->tcp.is_dead = true;
	aw_loop_bury(will->loop, &will->lifeline);
}

/* False: TCP takes no more for now, or for ever. */
static bool say_last(struct will *will)
{
	while (will->at < will->len) {
		ssize_t n = send(will->socket, will->last + will->at, will->len - will->at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return false;
		will->at += (size_t)n;
	}
	return true;
}

/* False: nothing can come any more. */
static bool drop_input(const struct will *will)
{
	for (int i = 0; i < DROPS_MAX; i++) {
		ssize_t n = recv(will->socket, NULL, DROP_OCTETS, MSG_TRUNC | MSG_DONTWAIT);

		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
	}
	return true;
}

static void execute(struct will *will)
{
	bool said = say_last(will);

	if (said && !will->shut) {
		will->shut = true;
		shutdown(will->socket, SHUT_WR);
	}
	if (!drop_input(will) || aw_loop_set(will->loop, &will->tcp, will->socket,
					     said ? EPOLLIN : EPOLLIN | EPOLLOUT) != 0)
		drop(will);
}

typedef size_t last_send_fn(const struct anywarp_cm_note *note, const void *octets, size_t len,
			    void *fpdu, size_t room);

/* As it is now; of one that was cut off nothing is said. */
static void read_page(const struct will *will, struct aw_xs_will *page)
{
	if (pread(will->memory, page, sizeof(*page), 0) != (ssize_t)sizeof(*page))
		memset(page, 0, sizeof(*page));
}

/* The last message, if it is to be said, and can be. */
static size_t make_last(struct will *will, const struct aw_xs_will *page)
{
	last_send_fn *last_send = (last_send_fn *)aw_xs_cm_extension("anywarp_cm_last_send");
	uint8_t msg[AW_XS_MSG_LEN];

	if (!last_send || atomic_load(&page->state) != AW_XS_WILL_OPEN ||
	    atomic_load(&page->behind) || atomic_load(&page->unread))
		return 0;
	aw_xs_msg_put(msg, atomic_load(&page->net), AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT);
	return last_send(&page->note, msg, sizeof(msg), will->last, sizeof(will->last));
}

static bool is_void(const struct will *will)
{
	struct aw_xs_will page;

	read_page(will, &page);
	return atomic_load(&page.state) == AW_XS_WILL_VOID;
}

/* The program is dead, has another image, or has nothing to do with the connection any more. */
static void on_lifeline(struct aw_source *source, uint32_t events)
{
	struct will *will = source->owner;
	int lifeline = source->fd;
	struct aw_xs_will page;

	(void)events;
	aw_loop_set(will->loop, source, -1, 0);
	close(lifeline);
	if (is_void(will)) {
		drop(will);
		return;
	}
	read_page(will, &page);
	will->len = make_last(will, &page);
	will->until = now_s() + EXECUTION_S;
	aw_say(AW_SAY_INFO, "a program was killed: its connection ends %s",
	       will->len || atomic_load(&page.state) == AW_XS_WILL_TOLD ? "in order"
									: "in a reset");
	execute(will);
}

static void on_tcp(struct aw_source *source, uint32_t events)
{
	(void)events;
	execute(source->owner);
}

static void source_init(struct aw_source *source, struct will *will,
			void (*ready)(struct aw_source *source, uint32_t events))
{
	*source = (struct aw_source){ .fd = -1, .ready = ready, .bury = bury, .owner = will };
}

static struct will *make(struct aw_loop *loop, const struct aw_order *order,
			 const int fds[AW_WILL_FDS])
{
	struct will *will = calloc(1, sizeof(*will));

	if (!will)
		return NULL;
	will->loop = loop;
	will->memory = fds[2];
	will->socket = fds[0];
	will->ino = order->ino;
	will->pid = order->pid;
	will->fd = order->fd;
	will->mode = order->mode;
	will->remote = order->remote;
	source_init(&will->lifeline, will, on_lifeline);
	source_init(&will->tcp, will, on_tcp);
	return will;
}

void aw_wills_add(struct aw_loop *loop, const struct aw_order *order, const int fds[AW_WILL_FDS])
{
	struct will *will = make(loop, order, fds);

	if (!will) {
		aw_say(AW_SAY_WARN, "no memory for a direct connection's will");
		for (int i = 0; i < AW_WILL_FDS; i++)
			close(fds[i]);
		return;
	}
	will->next = wills;
	wills = will;
	count++;
	if (aw_loop_set(loop, &will->lifeline, fds[1], EPOLLIN) != 0) {
		close(fds[1]);
		drop(will);
	}
}

static void read_stats(const struct aw_xs_will *page, struct aw_xs_stats *stats)
{
	*stats = (struct aw_xs_stats){
		.state = (enum aw_xs_state)atomic_load(&page->ep_state),
		.octets_in = atomic_load(&page->octets_in),
		.octets_out = atomic_load(&page->octets_out),
		.send_credits = atomic_load(&page->send_credits),
		.receive_credits = atomic_load(&page->receive_credits),
	};
}

bool aw_wills_find(uint64_t ino, uint8_t *mode, struct sockaddr_storage *remote,
		   struct aw_xs_stats *stats)
{
	const struct will *will = wills;
	struct aw_xs_will page;

	while (will && (will->ino != ino || is_void(will)))
		will = will->next;
	if (!will)
		return false;
	*mode = will->mode;
	*remote = will->remote;
	read_page(will, &page);
	read_stats(&page, stats);
	return true;
}

void aw_wills_each(pid_t pid, void (*see)(int to, int fd, uint64_t ino), int to)
{
	for (const struct will *will = wills; will; will = will->next)
		if (will->pid == pid)
			see(to, will->fd, will->ino);
}

void aw_wills_review(void)
{
	struct will *will, *next;

	for (will = wills; will; will = next) {
		next = will->next;
		if (will->until && now_s() > will->until)
			drop(will);
	}
}

size_t aw_wills_count(void)
{
	return count;
}
