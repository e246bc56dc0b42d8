// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads orders and carries them out, one after the other.
#include "xsock/proxy/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xsock/base/fds.h"
#include "xsock/base/log.h"
#include "xsock/proxy/closer.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/door.h"
#include "xsock/proxy/farewell.h"
#include "xsock/proxy/listeners.h"
#include "xsock/proxy/options.h"
#include "xsock/proxy/request_msg.h"
#include "xsock/proxy/status.h"

#define REQUESTS_A_TURN 64 /* then connections have theirs, whoever orders without end */
#define REQUESTS_MAX 1024 /* more than a socket holds */

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

static int reply_of(const struct aw_request_msg *msg)
{
	return msg->fds[msg->count - 1];
}

static void answer(int reply, int error)
{
	struct aw_reply sent = { .error = error };

	(void)aw_fds_send(reply, &sent, sizeof(sent), NULL, 0, MSG_DONTWAIT);
}

static void get_option(const struct aw_request *request, int reply)
{
	struct aw_conn *conn = aw_conns_find(request->ino);
	struct aw_reply got = { .error = ENOTCONN };

	if (conn)
		got.error = aw_options_get(&conn->kept, request, &got);
	(void)aw_fds_send(reply, &got, sizeof(got), NULL, 0, MSG_DONTWAIT);
}

/* Of a connection that is over an option can still be set, as TCP's can. */
static void set_option(const struct aw_request *request, int reply)
{
	struct aw_conn *conn = aw_conns_find(request->ino);

	answer(reply, conn ? aw_options_set(&conn->kept, conn->bridge, request) : 0);
}

/* Who has the connection's fd may have its socket. */
static void lend_socket(const struct aw_request *request, int reply)
{
	const struct aw_conn *conn = aw_conns_find(request->ino);
	struct aw_reply sent = { 0 };
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

static void add_drain(struct aw_request_msg *msg)
{
	struct drain *drain = drains_count < DRAINS_MAX ? calloc(1, sizeof(*drain)) : NULL;
	int ms = 0;

	if (!drain) {
		answer(reply_of(msg), EAGAIN); /* its bytes are sent nevertheless */
		return;
	}
	memcpy(&ms, msg->request.value, sizeof(ms));
	if (ms > DRAIN_MS_MAX)
		ms = DRAIN_MS_MAX;
	*drain = (struct drain){ drains, msg->request.ino, now_ms() + ms, reply_of(msg) };
	(void)aw_request_msg_take_fd(msg, msg->count - 1);
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

static void do_about_connection(struct aw_request_msg *msg)
{
	const struct aw_request *request = &msg->request;
	int reply = reply_of(msg);

	/*
	 * The program's end is closed before the program goes on: as long as a copy is open, epoll sets tell of an fd that the
	 * program has closed, or of another file that has its number by then.
	 */
	close(aw_request_msg_take_fd(msg, 0));
	if (request->kind == AW_REQUEST_GET_OPTION)
		get_option(request, reply);
	else if (request->kind == AW_REQUEST_SET_OPTION)
		set_option(request, reply);
	else if (request->kind == AW_REQUEST_SOCKET)
		lend_socket(request, reply);
	else if (request->kind == AW_REQUEST_DRAIN)
		add_drain(msg);
	else
		answer(reply, aw_conns_error(request->ino));
}

/* A name that is taken would lead the orders of another's connection here. */
static void start(struct aw_request_msg *msg)
{
	if (aw_conns_find(msg->request.ino))
		return;
	close(aw_request_msg_take_fd(msg, 2)); /* the program's end is its own */
	aw_status_serve(msg->request.pid);
	aw_conns_start(loop, &msg->request, aw_request_msg_take_fd(msg, 0),
		       aw_request_msg_take_fd(msg, 1));
}

/* Memory is read that its sender may write to at any time: a process of another user is not to be believed. */
static int take_share(struct aw_share *share, const struct aw_request_msg *msg, uint64_t tcp_ino)
{
	const struct aw_request *request = &msg->request;
	int err = EPERM;

	if (msg->from.uid == geteuid())
		err = aw_share_take(share, msg->fds[3], request->slot, tcp_ino);
	return err == EPERM && request->alone ? aw_share_copy(share, msg->fds[3], request->slot)
					      : err;
}

static int start_record(struct aw_request_msg *msg, uint64_t tcp_ino)
{
	struct aw_line_record_start begun = {
		.tcp = msg->fds[0],
		.far = msg->fds[1],
		.near = msg->request.alone ? -1 : msg->fds[2],
		.threads = msg->request.threads,
	};
	int near, err;

	if (aw_conns_find(msg->request.ino))
		return EEXIST;
	err = take_share(&begun.share, msg, tcp_ino);
	if (err)
		return err;
	err = aw_conns_start_record(loop, &msg->request, &begun);
	if (err) {
		aw_share_put(&begun.share);
		return err;
	}
	(void)aw_request_msg_take_fd(msg, 0);
	(void)aw_request_msg_take_fd(msg, 1);
	near = aw_request_msg_take_fd(msg, 2);
	if (begun.near < 0)
		close(near); /* the program's end is its own */
	aw_status_serve(msg->request.pid);
	return 0;
}

/* Where another process that holds the slot was here before, the sender gets the same end. */
static void bridge_record(struct aw_request_msg *msg)
{
	struct aw_reply sent = { 0 };
	struct stat file;
	int near;

	if (fstat(msg->fds[0], &file) != 0) {
		answer(reply_of(msg), EPERM);
		return;
	}
	near = msg->from.uid == geteuid() ? aw_conns_near(file.st_ino) : -1;
	if (near >= 0)
		(void)aw_fds_send(reply_of(msg), &sent, sizeof(sent), &near, 1, MSG_DONTWAIT);
	else
		answer(reply_of(msg), start_record(msg, file.st_ino));
}

static void carry_out(struct aw_request_msg *msg)
{
	const struct aw_request *request = &msg->request;

	switch ((enum aw_request_kind)request->kind) {
	case AW_REQUEST_START:
		start(msg);
		break;
	case AW_REQUEST_RECORD:
		bridge_record(msg);
		break;
	case AW_REQUEST_PRESENT:
		aw_status_serve(request->pid);
		break;
	case AW_REQUEST_ACCEPTED:
		aw_listeners_accepted(&request->local, &request->remote);
		break;
	case AW_REQUEST_LISTEN:
		aw_door_open(loop);
		aw_listeners_add(request->ino, &request->local, request->v6only,
				 &(struct aw_listener_can){ aw_request_msg_may_bind(msg),
							    request->records });
		aw_closer_close(aw_request_msg_take_fd(msg, 0)); /* before the program goes on */
		answer(reply_of(msg), 0);
		break;
	case AW_REQUEST_DECIDE:
		aw_closer_close(aw_request_msg_take_fd(msg, 0)); /* likewise */
		answer(reply_of(msg),
		       aw_listeners_decide(&request->local, &request->remote) ? 0 : EAGAIN);
		break;
	case AW_REQUEST_FAREWELL:
		aw_farewell_add(loop, aw_request_msg_take_fd(msg, 0));
		break;
	case AW_REQUEST_RELEASE:
		/* Also of a program that has given up root: the port is taken for its own listeners. */
		aw_listeners_release(&request->local);
		answer(reply_of(msg), 0);
		break;
	case AW_REQUEST_GET_OPTION:
	case AW_REQUEST_SET_OPTION:
	case AW_REQUEST_SOCKET:
	case AW_REQUEST_DRAIN:
	case AW_REQUEST_ERROR:
		do_about_connection(msg);
		break;
	}
}

/* Returns whether there may be more. */
static bool take_request(void)
{
	struct aw_request_msg msg;
	int got = aw_request_msg_recv(source.fd, &msg);

	if (got < 0) {
		is_over = true;
		aw_loop_set(loop, &source, -1, 0);
	}
	if (got <= 0)
		return false;
	if (aw_request_msg_check(&msg))
		carry_out(&msg);
	else
		aw_xs_log(AW_XS_LOG_ERROR, "an order of process %d is refused", (int)msg.from.pid);
	aw_request_msg_close(&msg);
	return true;
}

static void take_requests(int most)
{
	while (most-- > 0 && !is_over && take_request())
		;
}

static void ready(struct aw_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	take_requests(REQUESTS_A_TURN);
}

void aw_control_catch_up(void)
{
	take_requests(REQUESTS_MAX);
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
