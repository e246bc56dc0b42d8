// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives requests and serves them, one after the other.
#include "xsock/proxy/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/fds.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/loop.h"
#include "xsock/proxy/request_msg.h"
#include "xsock/proxy/status.h"

/* after so many requests the loop serves connections again */
#define REQUESTS_A_TURN 64
#define REQUESTS_MAX 1024 /* more than a socket's queue holds */

static struct aw_loop_source source = { .fd = -1 };
static bool is_over;

static int reply_of(const struct aw_request_msg *msg)
{
	return msg->fds[msg->count - 1];
}

static void reply_error(int reply, int error)
{
	struct aw_reply sent = { .error = error };

	(void)aw_fds_send(reply, &sent, sizeof(sent), NULL, 0, MSG_DONTWAIT);
}

static void get_option(const struct aw_request *request, int reply)
{
	struct aw_proxy_conn *conn = aw_conns_find(request->ino);
	const int *value = conn ? aw_kept_find(&conn->kept, request->level, request->name) : NULL;
	struct aw_reply got = { .error = conn ? EINVAL : ENOTCONN };

	if (value) {
		got.error = 0;
		got.len = request->len < (int)sizeof(int) ? request->len : (int)sizeof(int);
		memcpy(got.value, value, (size_t)got.len);
	}
	(void)aw_fds_send(reply, &got, sizeof(got), NULL, 0, MSG_DONTWAIT);
}

/* Setting an option of a connection that has ended succeeds, as it does for TCP. */
static void set_option(const struct aw_request *request, int reply)
{
	struct aw_proxy_conn *conn = aw_conns_find(request->ino);
	bool lingers = request->level == SOL_SOCKET && request->name == SO_LINGER;
	struct linger linger;
	struct aw_line *line;
	int value, err = 0;

	if (conn && lingers && request->len < (int)sizeof(linger)) {
		err = EINVAL;
	} else if (conn && lingers) {
		memcpy(&linger, request->value, sizeof(linger));
		aw_bridge_set_linger(conn->bridge, &linger);
	} else if (conn) {
		line = aw_bridge_line(conn->bridge);
		err = aw_kept_set(&conn->kept, request->level, request->name, request->value,
				  (size_t)request->len, &value);
		if (!err)
			line->ops->set_option(line, request->level, request->name, value);
	}
	reply_error(reply, err);
}

static void serve_connection(struct aw_request_msg *msg)
{
	const struct aw_request *request = &msg->request;
	const struct aw_proxy_conn *conn = aw_conns_find(request->ino);
	struct aw_reply lent = { 0 };
	int tcp, reply = reply_of(msg);

	/*
	 * The near end (the program's end of the pair) is closed before the reply: as long as this process has a copy open, the
	 * program's epoll sets report an fd that the program has closed, or another file that has
	 * got its number since.
	 */
	close(aw_request_msg_take_fd(msg, 0));
	if (request->kind == AW_REQUEST_GET_OPTION) {
		get_option(request, reply);
	} else if (request->kind == AW_REQUEST_SET_OPTION) {
		set_option(request, reply);
	} else if (request->kind == AW_REQUEST_SOCKET) {
		/* A process that has the near end may have the TCP socket, too. */
		tcp = conn ? aw_bridge_tcp(conn->bridge) : -1;
		if (tcp < 0)
			reply_error(reply, ENOTCONN);
		else
			(void)aw_fds_send(reply, &lent, sizeof(lent), &tcp, 1, MSG_DONTWAIT);
	} else if (request->kind == AW_REQUEST_DRAINED) {
		reply_error(reply, conn && aw_bridge_unsent(conn->bridge) ? EAGAIN : 0);
	} else {
		reply_error(reply, aw_conns_error(request->ino));
	}
}

/*
 * The memory's sender may write to it at any time, so that only memory of a process of this user is mapped; of another
 * user's slot, which no other process holds, a copy is made.
 */
static int start_record(struct aw_request_msg *msg, uint64_t tcp_ino)
{
	const struct aw_request *request = &msg->request;
	struct aw_line_record_start begun = {
		.tcp = msg->fds[0],
		.far = msg->fds[1],
		.near = request->alone ? -1 : msg->fds[2],
		.threads = request->threads,
	};
	int near, err = EPERM;

	if (aw_conns_find(request->ino))
		return EEXIST;
	if (msg->from.uid == geteuid())
		err = aw_share_take(&begun.share, msg->fds[3], request->slot, tcp_ino);
	if (err == EPERM && request->alone)
		err = aw_share_copy(&begun.share, msg->fds[3], request->slot);
	if (err)
		return err;
	err = aw_conns_start_record(request, &begun);
	if (err) {
		aw_share_put(&begun.share);
		return err;
	}
	(void)aw_request_msg_take_fd(msg, 0);
	(void)aw_request_msg_take_fd(msg, 1);
	near = aw_request_msg_take_fd(msg, 2);
	if (begun.near < 0)
		close(near); /* this process needs no near end */
	aw_status_serve(request->pid);
	return 0;
}

/*
 * If another process that holds the slot has asked for its bridge already, the sender receives the
 * same near end.
 */
static void serve_record(struct aw_request_msg *msg)
{
	struct aw_reply sent = { 0 };
	struct stat file;
	int near;

	if (fstat(msg->fds[0], &file) != 0) {
		reply_error(reply_of(msg), EPERM);
		return;
	}
	near = msg->from.uid == geteuid() ? aw_conns_near(file.st_ino) : -1;
	if (near >= 0)
		(void)aw_fds_send(reply_of(msg), &sent, sizeof(sent), &near, 1, MSG_DONTWAIT);
	else
		reply_error(reply_of(msg), start_record(msg, file.st_ino));
}

static void serve_request(struct aw_request_msg *msg)
{
	const struct aw_request *request = &msg->request;

	switch ((enum aw_request_kind)request->kind) {
	case AW_REQUEST_START:
		/* Later requests name a connection by its near end, and would reach the wrong one of two. */
		if (aw_conns_find(request->ino))
			break;
		close(aw_request_msg_take_fd(msg, 2)); /* this process needs no near end */
		aw_status_serve(request->pid);
		aw_conns_start(request, aw_request_msg_take_fd(msg, 0),
			       aw_request_msg_take_fd(msg, 1));
		break;
	case AW_REQUEST_RECORD:
		serve_record(msg);
		break;
	case AW_REQUEST_PRESENT:
		aw_status_serve(request->pid);
		break;
	case AW_REQUEST_GET_OPTION:
	case AW_REQUEST_SET_OPTION:
	case AW_REQUEST_SOCKET:
	case AW_REQUEST_DRAINED:
	case AW_REQUEST_ERROR:
		serve_connection(msg);
		break;
	}
}

static void take_requests(int most)
{
	struct aw_request_msg msg;
	int got;

	while (most-- > 0 && !is_over) {
		got = aw_request_msg_recv(source.fd, &msg);
		if (got < 0) {
			is_over = true;
			aw_loop_set(&source, -1, 0);
		}
		if (got <= 0)
			return;
		if (aw_request_msg_check(&msg))
			serve_request(&msg);
		else
			aw_log(AW_LOG_ERROR, "an invalid request of process %d is refused",
			       (int)msg.from.pid);
		aw_request_msg_close(&msg);
	}
}

static void control_ready(struct aw_loop_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	take_requests(REQUESTS_A_TURN);
}

void aw_control_catch_up(void)
{
	take_requests(REQUESTS_MAX);
}

int aw_control_init(int fd)
{
	int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	source.ready = control_ready;
	return aw_loop_set(&source, fd, EPOLLIN);
}

bool aw_control_is_over(void)
{
	return is_over;
}
