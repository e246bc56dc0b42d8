// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends requests to the proxy process and receives its replies.
#include "xsock/process/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "xsock/base/fds.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/spawn.h"

#define HIGH_FD 1024

/* This process's end of the control pair, or -1. */
static int control AW_GUARDED_BY(aw_fdtab_mutex) = -1;
static struct stat control_file
	AW_GUARDED_BY(aw_fdtab_mutex); /* the file that control must still be */

static bool is_same_file(int fd, const struct stat *file)
{
	struct stat now;

	return fstat(fd, &now) == 0 && now.st_dev == file->st_dev && now.st_ino == file->st_ino;
}

/* A program does not expect an fd of its own there. */
static int high_floor(rlim_t limit)
{
	return limit < 2 * HIGH_FD ? (int)(limit - limit / 8) : HIGH_FD;
}

int aw_proxy_copy_high(int fd)
{
	struct rlimit limit = { .rlim_cur = 2 * HIGH_FD };

	getrlimit(RLIMIT_NOFILE, &limit);
	return aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, high_floor(limit.rlim_cur));
}

int aw_proxy_copy_spare(int fd)
{
	struct rlimit limit;

	if (fd >= AW_FDTAB_MAX || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd >= limit.rlim_cur / 2)
		return -1;
	return aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, high_floor(limit.rlim_cur));
}

int aw_proxy_move_high(int fd)
{
	int high = aw_proxy_copy_high(fd);

	if (high < 0)
		return fd;
	aw_libc()->close(fd);
	return high;
}

/*
 * Returns a duplicate of control, or -1. The program may have closed control without a wrapper:
 * then the number is another file's.
 */
static int duplicate_control(void)
{
	int fd = -1;

	aw_fdtab_lock();
	if (control >= 0 && is_same_file(control, &control_file))
		fd = aw_libc()->fcntl(control, F_DUPFD_CLOEXEC, 0);
	else
		control = -1;
	aw_fdtab_unlock();
	return fd;
}

static int own_control(void)
{
	int fd;

	aw_fdtab_lock();
	fd = control >= 0 && is_same_file(control, &control_file) ? control : -1;
	aw_fdtab_unlock();
	return fd;
}

/* A proxy process of root's must take no requests from a program that runs as another user. */
int aw_proxy_export(void)
{
	int fd = own_control();
	struct ucred maker; /* maker of the pair; its proxy process has the same ids */
	socklen_t len = sizeof(maker);

	if (fd < 0 || aw_libc()->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &len) != 0 ||
	    maker.uid != geteuid() || maker.gid != getegid())
		return -1;
	return fd;
}

/* Makes fd the control; with replaces false unless another thread has started a proxy process meanwhile. Returns whether it is. */
static bool set_control(int fd, bool replaces)
{
	bool set;

	aw_fdtab_hide(fd);
	aw_fdtab_lock();
	set = replaces || control < 0 || !is_same_file(control, &control_file);
	if (set) {
		control = fd;
		fstat(fd, &control_file);
	}
	aw_fdtab_unlock();
	return set;
}

void aw_proxy_import(int fd)
{
	aw_libc()->fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)set_control(fd, true);
}

/* Starts a proxy process unless there is one. One that another thread has started at the same time is used, and this one ends. */
int aw_proxy_start(void)
{
	int ends[2], fd = duplicate_control(), on = 1, err;

	if (fd >= 0) {
		aw_libc()->close(fd);
		return 0;
	}
	if (aw_libc()->socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	/* The kernel names the sender of every request to the proxy process. */
	(void)aw_libc()->setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	err = aw_spawn_proxy(ends[1]);
	aw_libc()->close(ends[1]);
	if (err) {
		aw_libc()->close(ends[0]);
		return err;
	}
	fd = aw_proxy_move_high(ends[0]);
	if (!set_control(fd, false)) {
		aw_fdtab_forget(fd);
		aw_libc()->close(fd);
	}
	return 0;
}

void aw_proxy_free_fd(int fd)
{
	int moved;

	if (aw_fdtab_state(fd) != AW_FD_INTERNAL)
		return;
	aw_fdtab_free_beside(fd);
	aw_fdtab_forget(fd);
	if (fd != own_control())
		return;
	moved = aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
	if (moved >= 0)
		(void)set_control(moved, true);
}

void aw_request_init(struct aw_request *request, enum aw_request_kind kind)
{
	memset(request, 0, sizeof(*request));
	request->magic = AW_REQUEST_MAGIC;
	request->kind = (uint8_t)kind;
	request->fd = -1;
}

uint64_t aw_proxy_id(void)
{
	uint64_t number;

	aw_fdtab_lock();
	number = control >= 0 ? control_file.st_ino : 0;
	aw_fdtab_unlock();
	return number;
}

static void mark_orphaned(struct aw_sock *sock, int fd, void *arg)
{
	const uint64_t *proxy = arg;

	(void)fd;
	if (sock->state == AW_FD_BRIDGED && sock->proxy == *proxy) {
		sock->proxy = 0;
		sock->orphaned = true;
	}
}

/* The proxy process was killed, and its connections are lost: marks their sockets as orphaned. */
static void detach_proxy(void)
{
	uint64_t number;

	aw_fdtab_lock();
	number = control_file.st_ino;
	if (control >= 0) {
		if (is_same_file(control, &control_file))
			aw_libc()->close(control);
		aw_fdtab_each(mark_orphaned, &number);
	}
	control = -1;
	aw_fdtab_unlock();
}

int aw_proxy_notify(const struct aw_request *request, const int *fds, int count)
{
	int err = 0;

	/* If the proxy process has died, the request goes to a new one. */
	for (int attempt = 0; attempt < 2; attempt++) {
		int to;

		err = aw_proxy_start();
		if (err)
			return err;
		to = duplicate_control();
		if (to < 0)
			return errno;
		err = aw_fds_send(to, request, sizeof(*request), fds, count, 0);
		aw_libc()->close(to);
		if (err != EPIPE && err != ECONNRESET)
			break;
		detach_proxy();
	}
	return err;
}

/*
 * Reads a reply, and into *fd the fd beside it, or -1; fd NULL: none is received. Returns 0 or an errno.
 */
static int read_reply(int from, struct aw_reply *reply, int *fd)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = fd ? room : NULL,
			      /* the padding of room would admit a second fd */
			      .msg_controllen = fd ? CMSG_LEN(sizeof(int)) : 0 };
	ssize_t got = aw_libc()->recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	if (got < 0)
		return errno;
	if (fd)
		*fd = -1;
	if (fd && head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	return got == (ssize_t)sizeof(*reply) ? 0 : ECONNRESET;
}

/*
 * Reads a reply and calls use with the TCP socket beside it. Under the table's lock no child
 * of a fork gets the socket that the proxy process lends.
 */
static int take_reply(int from, struct aw_reply *reply, aw_proxy_use *use, void *arg)
	AW_REQUIRES(aw_fdtab_mutex)
{
	int tcp = -1, err = read_reply(from, reply, use ? &tcp : NULL);
	bool is_right = tcp < 0 || aw_sockopt_int(tcp, SOL_SOCKET, SO_PROTOCOL, 0) == IPPROTO_TCP;

	if (tcp >= 0) {
		if (is_right && !err)
			use(tcp, arg);
		aw_libc()->close(tcp);
	}
	if (err)
		return err;
	if (!is_right)
		return EPROTO;
	return use && !reply->error && tcp < 0 ? EMFILE : 0;
}

/*
 * Sends a request and waits until its reply is there. fds has room for one more than count. The
 * caller reads the reply from *from and closes it. Returns 0 or an errno.
 */
static int send_request(const struct aw_request *request, int *fds, int count, int *from)
{
	struct pollfd reply = { .events = POLLIN };
	int ends[2], err;

	if (aw_libc()->socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	fds[count] = ends[1];
	err = aw_proxy_notify(request, fds, count + 1);
	aw_libc()->close(ends[1]);
	reply.fd = ends[0];
	while (!err && aw_libc()->poll(&reply, 1, -1) < 0)
		err = errno == EINTR ? 0 : errno;
	if (err)
		aw_libc()->close(ends[0]);
	else
		*from = ends[0];
	return err;
}

/* Closes from after the reply was read, or reading it has failed with err. Returns err. */
static int finish_request(int from, int err)
{
	struct pollfd proxy;

	if (err == ECONNRESET) {
		/* The proxy process has received the request, and has died or ended the connection. */
		proxy = (struct pollfd){ .fd = duplicate_control() };
		if (proxy.fd >= 0 && aw_libc()->poll(&proxy, 1, 0) > 0 && proxy.revents & POLLHUP)
			detach_proxy();
		if (proxy.fd >= 0)
			aw_libc()->close(proxy.fd);
	}
	aw_libc()->close(from);
	return err;
}

static int call_proxy(const struct aw_request *request, int about, struct aw_reply *reply,
		      aw_proxy_use *use, void *arg)
{
	int fds[2] = { about }, from, err = send_request(request, fds, about >= 0, &from);

	if (err)
		return err;
	aw_fdtab_lock();
	err = take_reply(from, reply, use, arg);
	aw_fdtab_unlock();
	return finish_request(from, err);
}

int aw_proxy_call_with(const struct aw_request *request, const int *fds, int count,
		       struct aw_reply *reply, int *fd)
{
	int room[AW_REQUEST_FDS], from, err;

	memcpy(room, fds, sizeof(*fds) * (size_t)count);
	err = send_request(request, room, count, &from);
	return err ? err : finish_request(from, read_reply(from, reply, fd));
}

int aw_proxy_call(const struct aw_request *request, int about, struct aw_reply *reply)
{
	return own_control() < 0 ? ENOTCONN : call_proxy(request, about, reply, NULL, NULL);
}

int aw_proxy_borrow_socket(int near, aw_proxy_use *use, void *arg)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	if (own_control() < 0)
		return ENOTCONN;
	aw_request_init(&request, AW_REQUEST_SOCKET);
	err = call_proxy(&request, near, &reply, use, arg);
	return err ? err : reply.error;
}

void aw_proxy_present(void)
{
	struct aw_request request;

	if (!atomic_load_explicit(&aw_fdtab_bridged, memory_order_relaxed) || aw_sandbox_is_on() ||
	    own_control() < 0)
		return;
	aw_request_init(&request, AW_REQUEST_PRESENT);
	(void)aw_proxy_notify(&request, NULL, 0);
}
