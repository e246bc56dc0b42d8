// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads orders and carries them out, one after the other.
#include "xsock/keeper/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "xsock/keeper/carriers.h"
#include "xsock/keeper/conns.h"
#include "xsock/keeper/listeners.h"
#include "xsock/keeper/options.h"
#include "xsock/keeper/status.h"
#include "xsock/keeper/wills.h"
#include "xsock/order.h"
#include "xsock/preload/say.h"

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
static bool is_over;

static void answer(int reply, int error)
{
	struct aw_answer sent = { .error = error };

	(void)send(reply, &sent, sizeof(sent), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void get_option(const struct aw_order *order, int reply)
{
	struct aw_conn *conn = aw_conns_find(order->ino);
	struct aw_answer got = { .error = ENOTCONN };

	if (conn)
		got.error = aw_options_get(&conn->kept, conn->bridge, order, &got);
	(void)send(reply, &got, sizeof(got), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Of a connection that is over an option can still be set, as TCP's can. */
static void set_option(const struct aw_order *order, int reply)
{
	struct aw_conn *conn = aw_conns_find(order->ino);

	answer(reply, conn ? aw_options_set(&conn->kept, conn->bridge, order) : 0);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns whether reply is kept. */
static bool add_drain(const struct aw_order *order, int reply)
{
	struct drain *drain = calloc(1, sizeof(*drain));
	int ms = 0;

	if (!drain)
		return false;
	memcpy(&ms, order->value, sizeof(ms));
	*drain = (struct drain){ drains, order->ino, now_ms() + ms, reply };
	drains = drain;
	return true;
}

static bool has_drained(uint64_t ino)
{
	const struct aw_conn *conn = aw_conns_find(ino);

	return !conn || (!aw_bridge_unread(conn->bridge) && !aw_bridge_unsent(conn->bridge) &&
			 !aw_xs_ep_unsent(aw_bridge_ep(conn->bridge)));
}

bool aw_control_review(void)
{
	struct drain **at = &drains;

	while (*at) {
		struct drain *drain = *at;
		bool done = has_drained(drain->ino);

		if (!done && now_ms() < drain->until_ms) {
			at = &drain->next;
			continue;
		}
		answer(drain->reply, done ? 0 : ETIMEDOUT);
		close(drain->reply);
		*at = drain->next;
		free(drain);
	}
	return drains != NULL;
}

/* Why a connection has ended, also one that a carrier had. False: that is not known here, or not asked. */
static bool is_told(const struct aw_order *order, int reply)
{
	int error;

	if (order->kind != AW_ORDER_ERROR)
		return false;
	aw_carriers_hear();
	error = aw_conns_error(order->ino);
	if (error)
		answer(reply, error);
	return error != 0;
}

/* What is about a connection that is not here may be about one of a carrier's, which then answers. */
static bool is_carried(const struct aw_order *order, int reply)
{
	return order->ino && !aw_conns_find(order->ino) && aw_carriers_pass(order, reply);
}

/* An order with an answer. Returns whether reply is kept. */
static bool do_answered(const struct aw_order *order, int reply)
{
	switch ((enum aw_order_kind)order->kind) {
	case AW_ORDER_DECIDE:
		answer(reply, aw_listeners_decide(&order->local, &order->remote) ? 0 : EAGAIN);
		return false;
	case AW_ORDER_GET_OPTION:
		get_option(order, reply);
		return false;
	case AW_ORDER_SET_OPTION:
		set_option(order, reply);
		return false;
	case AW_ORDER_DRAIN:
		return add_drain(order, reply);
	case AW_ORDER_LISTEN:
		aw_listeners_add(order->ino, &order->local, order->level != 0);
		answer(reply, 0);
		return false;
	case AW_ORDER_RELEASE:
		aw_listeners_release(&order->local);
		answer(reply, 0);
		return false;
	case AW_ORDER_ERROR:
		answer(reply, 0); /* is_told knows of none */
		return false;
	case AW_ORDER_STATUS:
		aw_status_tell(reply, order->pid);
		return false;
	case AW_ORDER_CARRIER:
		aw_carriers_add(loop, order, reply);
		return true;
	case AW_ORDER_START:
	case AW_ORDER_ACCEPTED:
	case AW_ORDER_DIRECT:
	case AW_ORDER_PRESENT:
	case AW_ORDER_ENDED:
		break;
	}
	return false;
}

/* By such an order the process has connections, which its status tells. */
static bool is_of_owner(const struct aw_order *order)
{
	return order->kind == AW_ORDER_START || order->kind == AW_ORDER_DIRECT ||
	       order->kind == AW_ORDER_CARRIER || order->kind == AW_ORDER_PRESENT;
}

static void carry_out(const struct aw_order *order, int *fds, int count)
{
	if (is_of_owner(order))
		aw_status_serve(order->pid);
	if (order->kind == AW_ORDER_START && count == 2) {
		aw_conns_start(loop, order, fds[0], fds[1]);
		return;
	}
	if (order->kind == AW_ORDER_DIRECT)
		aw_listeners_forget(&order->local, &order->remote);
	if (order->kind == AW_ORDER_DIRECT && count == 3) {
		aw_wills_add(loop, order, fds);
		return;
	}
	if (order->kind == AW_ORDER_ACCEPTED && count == 0) {
		aw_listeners_accepted(&order->local, &order->remote);
		return;
	}
	if (count == 1 && !is_told(order, fds[0]) && !is_carried(order, fds[0]) &&
	    do_answered(order, fds[0]))
		return;
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

static int take_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	size_t octets;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
		return 0;
	octets = head->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(head), octets);
	return (int)(octets / sizeof(int));
}

/* Returns whether there may be more. */
static bool take_order(void)
{
	char room[CMSG_SPACE(sizeof(int) * AW_ORDER_FDS)];
	int fds[AW_ORDER_FDS], count;
	struct aw_order order;
	struct iovec iov = { &order, sizeof(order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	ssize_t got = recvmsg(source.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return errno == EINTR;
	if (got == 0) {
		is_over = true;
		aw_loop_set(loop, &source, -1, 0);
		return false;
	}
	count = take_fds(&msg, fds);
	if (msg.msg_flags & MSG_CTRUNC)
		aw_say(AW_SAY_ERROR, "the keeper has no fd left and loses a connection: "
				     "raise the hard limit of open files");
	if (got == (ssize_t)sizeof(order) && order.magic == AW_ORDER_MAGIC) {
		carry_out(&order, fds, count);
		return true;
	}
	aw_say(AW_SAY_ERROR, "the keeper does not know an order of %zd octets", got);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	return true;
}

static void ready(struct aw_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	while (!is_over && take_order())
		;
}

void aw_control_catch_up(void)
{
	ready(&source, EPOLLIN);
}

int aw_control_init(struct aw_loop *l, int fd)
{
	loop = l;
	source.ready = ready;
	return aw_loop_set(loop, &source, fd, EPOLLIN);
}

bool aw_control_is_over(void)
{
	return is_over;
}
