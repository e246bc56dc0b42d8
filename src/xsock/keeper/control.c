// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads orders and carries them out, one after the other.
#include "xsock/keeper/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xsock/fds.h"
#include "xsock/keeper/closer.h"
#include "xsock/keeper/conns.h"
#include "xsock/keeper/door.h"
#include "xsock/keeper/farewell.h"
#include "xsock/keeper/letter.h"
#include "xsock/keeper/listeners.h"
#include "xsock/keeper/options.h"
#include "xsock/keeper/status.h"
#include "xsock/preload/say.h"

#define ORDERS_A_TURN 64 /* then connections have theirs, whoever orders without end */
#define ORDERS_MAX 1024 /* more than a socket holds */

#define DRAINS_MAX \
	256 /* threads in close(2) with SO_LINGER; each takes an fd of ours, and a look every 5 ms */
#define DRAIN_MS_MAX 86400000 /* a day: who waits in close(2) for longer is not there any more */

/* Somebody waits until a connection has sent what it has. */
struct drain {
	struct drain *next;
	uint64_t ino;
	int64_t until_ms;
	int reply;
};

static struct aw_source source = { .fd = -1 };
static struct aw_loop *loop;
static struct drain *drains;
static size_t drains_count;
static bool is_over;

static int reply_of(const struct aw_letter *letter)
{
	return letter->fds[letter->count - 1];
}

static void answer(int reply, int error)
{
	struct aw_answer sent = { .error = error };

	(void)aw_fds_send(reply, &sent, sizeof(sent), NULL, 0, MSG_DONTWAIT);
}

static void get_option(const struct aw_order *order, int reply)
{
	struct aw_conn *conn = aw_conns_find(order->ino);
	struct aw_answer got = { .error = ENOTCONN };

	if (conn)
		got.error = aw_options_get(&conn->kept, order, &got);
	(void)aw_fds_send(reply, &got, sizeof(got), NULL, 0, MSG_DONTWAIT);
}

/* Of a connection that is over an option can still be set, as TCP's can. */
static void set_option(const struct aw_order *order, int reply)
{
	struct aw_conn *conn = aw_conns_find(order->ino);

	answer(reply, conn ? aw_options_set(&conn->kept, conn->bridge, order) : 0);
}

/* Who has the connection's fd may have its socket. */
static void lend_socket(const struct aw_order *order, int reply)
{
	const struct aw_conn *conn = aw_conns_find(order->ino);
	struct aw_answer sent = { 0 };
	int tcp = conn ? aw_bridge_tcp(conn->bridge) : -1;

	if (tcp < 0)
		answer(reply, ENOTCONN);
	else
		(void)aw_fds_send(reply, &sent, sizeof(sent), &tcp, 1, MSG_DONTWAIT);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void add_drain(struct aw_letter *letter)
{
	struct drain *drain = drains_count < DRAINS_MAX ? calloc(1, sizeof(*drain)) : NULL;
	int ms = 0;

	if (!drain) {
		answer(reply_of(letter), EAGAIN); /* its octets are sent nevertheless */
		return;
	}
	memcpy(&ms, letter->order.value, sizeof(ms));
	if (ms > DRAIN_MS_MAX)
		ms = DRAIN_MS_MAX;
	*drain = (struct drain){ drains, letter->order.ino, now_ms() + ms, reply_of(letter) };
	(void)aw_letter_keep(letter, letter->count - 1);
	drains = drain;
	drains_count++;
}

static bool has_drained(uint64_t ino)
{
	const struct aw_conn *conn = aw_conns_find(ino);
	struct aw_line *line = conn ? aw_bridge_line(conn->bridge) : NULL;

	return !conn || (!aw_bridge_unread(conn->bridge) && !aw_bridge_unsent(conn->bridge) &&
			 !line->ops->unsent(line));
}

static bool is_forsaken(const struct drain *drain)
{
	struct pollfd pollfd = { .fd = drain->reply };

	return poll(&pollfd, 1, 0) > 0 && pollfd.revents & POLLHUP;
}

bool aw_control_review(void)
{
	struct drain **at = &drains;

	while (*at) {
		struct drain *drain = *at;
		bool done = has_drained(drain->ino);

		if (!done && now_ms() < drain->until_ms && !is_forsaken(drain)) {
			at = &drain->next;
			continue;
		}
		answer(drain->reply, done ? 0 : ETIMEDOUT);
		close(drain->reply);
		*at = drain->next;
		drains_count--;
		free(drain);
	}
	return drains != NULL;
}

static void do_about_connection(struct aw_letter *letter)
{
	const struct aw_order *order = &letter->order;
	int reply = reply_of(letter);

	/*
	 * The program's end is closed before the program goes on: as long as a copy is open, epoll sets tell of an fd that the
	 * program has closed, or of another file that has its number by then.
	 */
	close(aw_letter_keep(letter, 0));
	if (order->kind == AW_ORDER_GET_OPTION)
		get_option(order, reply);
	else if (order->kind == AW_ORDER_SET_OPTION)
		set_option(order, reply);
	else if (order->kind == AW_ORDER_SOCKET)
		lend_socket(order, reply);
	else if (order->kind == AW_ORDER_DRAIN)
		add_drain(letter);
	else
		answer(reply, aw_conns_error(order->ino));
}

/* A name that is taken would lead the orders of another's connection here. */
static void start(struct aw_letter *letter)
{
	if (aw_conns_find(letter->order.ino))
		return;
	close(aw_letter_keep(letter, 2)); /* the program's end is its own */
	aw_status_serve(letter->order.pid);
	aw_conns_start(loop, &letter->order, aw_letter_keep(letter, 0), aw_letter_keep(letter, 1));
}

/* Memory is read that its sender may write to at any time: a process of another user is not to be believed. */
static int take_share(struct aw_share *share, const struct aw_letter *letter, uint64_t tcp_ino)
{
	const struct aw_order *order = &letter->order;
	int err = EPERM;

	if (letter->from.uid == geteuid())
		err = aw_share_take(share, letter->fds[3], order->slot, tcp_ino);
	return err == EPERM && order->alone ? aw_share_copy(share, letter->fds[3], order->slot)
					    : err;
}

static int start_record(struct aw_letter *letter, uint64_t tcp_ino)
{
	struct aw_line_record_start begun = {
		.tcp = letter->fds[0],
		.far = letter->fds[1],
		.near = letter->order.alone ? -1 : letter->fds[2],
		.threads = letter->order.threads,
	};
	int near, err;

	if (aw_conns_find(letter->order.ino))
		return EEXIST;
	err = take_share(&begun.share, letter, tcp_ino);
	if (err)
		return err;
	err = aw_conns_start_record(loop, &letter->order, &begun);
	if (err) {
		aw_share_put(&begun.share);
		return err;
	}
	(void)aw_letter_keep(letter, 0);
	(void)aw_letter_keep(letter, 1);
	near = aw_letter_keep(letter, 2);
	if (begun.near < 0)
		close(near); /* the program's end is its own */
	aw_status_serve(letter->order.pid);
	return 0;
}

/* Where another process that holds the slot was here before, the sender gets the same end. */
static void bridge_record(struct aw_letter *letter)
{
	struct aw_answer sent = { 0 };
	struct stat file;
	int near;

	if (fstat(letter->fds[0], &file) != 0) {
		answer(reply_of(letter), EPERM);
		return;
	}
	near = letter->from.uid == geteuid() ? aw_conns_near(file.st_ino) : -1;
	if (near >= 0)
		(void)aw_fds_send(reply_of(letter), &sent, sizeof(sent), &near, 1, MSG_DONTWAIT);
	else
		answer(reply_of(letter), start_record(letter, file.st_ino));
}

static void carry_out(struct aw_letter *letter)
{
	const struct aw_order *order = &letter->order;

	switch ((enum aw_order_kind)order->kind) {
	case AW_ORDER_START:
		start(letter);
		break;
	case AW_ORDER_RECORD:
		bridge_record(letter);
		break;
	case AW_ORDER_PRESENT:
		aw_status_serve(order->pid);
		break;
	case AW_ORDER_ACCEPTED:
		aw_listeners_accepted(&order->local, &order->remote);
		break;
	case AW_ORDER_LISTEN:
		aw_door_open(loop);
		aw_listeners_add(order->ino, &order->local, order->v6only,
				 &(struct aw_listener_can){ aw_letter_may_bind(letter),
							    order->records });
		aw_closer_close(aw_letter_keep(letter, 0)); /* before the program goes on */
		answer(reply_of(letter), 0);
		break;
	case AW_ORDER_DECIDE:
		aw_closer_close(aw_letter_keep(letter, 0)); /* likewise */
		answer(reply_of(letter),
		       aw_listeners_decide(&order->local, &order->remote) ? 0 : EAGAIN);
		break;
	case AW_ORDER_FAREWELL:
		aw_farewell_add(loop, aw_letter_keep(letter, 0));
		break;
	case AW_ORDER_RELEASE:
		/* Also of a program that has given up root: the port is taken for its own listeners. */
		aw_listeners_release(&order->local);
		answer(reply_of(letter), 0);
		break;
	case AW_ORDER_GET_OPTION:
	case AW_ORDER_SET_OPTION:
	case AW_ORDER_SOCKET:
	case AW_ORDER_DRAIN:
	case AW_ORDER_ERROR:
		do_about_connection(letter);
		break;
	}
}

/* Returns whether there may be more. */
static bool take_order(void)
{
	struct aw_letter letter;
	int got = aw_letter_read(source.fd, &letter);

	if (got < 0) {
		is_over = true;
		aw_loop_set(loop, &source, -1, 0);
	}
	if (got <= 0)
		return false;
	if (aw_letter_check(&letter))
		carry_out(&letter);
	else
		aw_say(AW_SAY_ERROR, "an order of process %d is refused", (int)letter.from.pid);
	aw_letter_close(&letter);
	return true;
}

static void take_orders(int most)
{
	while (most-- > 0 && !is_over && take_order())
		;
}

static void ready(struct aw_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	take_orders(ORDERS_A_TURN);
}

void aw_control_catch_up(void)
{
	take_orders(ORDERS_MAX);
}

int aw_control_init(struct aw_loop *l, int fd)
{
	int on = 1;

	loop = l;
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	source.ready = ready;
	return aw_loop_set(loop, &source, fd, EPOLLIN);
}

bool aw_control_is_over(void)
{
	return is_over;
}
