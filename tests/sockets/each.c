// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "each.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORD "hello"
#define WORD_LEN 5
#define WAIT_MS 10000

static struct sockaddr_in server = { .sin_family = AF_INET };
static int conn, file, pipes[2], local[2];
static char word[64], large[200000];
static char *const arguments[] = { "true", NULL };
static char *const no_environment[] = { NULL };

static bool ends_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void each_prepare(int port, bool has_begun)
{
	server.sin_port = htons((in_port_t)port);
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conn = socket(AF_INET, SOCK_STREAM, 0);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (connect(conn, (struct sockaddr *)&server, sizeof(server)) || file < 0 || pipe(pipes) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, local))
		_exit(2);
	if (has_begun && (write(conn, WORD, WORD_LEN) != WORD_LEN ||
			  recv(conn, word, WORD_LEN, MSG_WAITALL) != WORD_LEN))
		_exit(3);
}

void each_end(void)
{
	int fds[] = { conn, file, pipes[0], pipes[1], local[0], local[1] };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
}

void each_use_all(int port)
{
	for (const struct each_use *each = each_uses; each->name; each++) {
		for (int has_begun = 0; has_begun < 2; has_begun++) {
			each_prepare(port, has_begun);
			if (!each->use()) {
				dprintf(STDERR_FILENO, "%s: %s\n", each->name, strerror(errno));
				_exit(4);
			}
			each_end();
		}
	}
}

int each_inheritance(int port)
{
	each_prepare(port, true);
	return conn;
}

bool each_is_alive(int fd)
{
	return write(fd, WORD, WORD_LEN) == WORD_LEN &&
	       recv(fd, word, WORD_LEN, MSG_WAITALL) == WORD_LEN && !memcmp(word, WORD, WORD_LEN);
}

static bool use_write(void)
{
	return write(conn, WORD, WORD_LEN) == WORD_LEN;
}

static bool use_writev(void)
{
	struct iovec iov[] = { { WORD, 2 }, { WORD, 3 } };

	return writev(conn, iov, 2) == WORD_LEN;
}

static bool use_large_write(void)
{
	return write(conn, large, sizeof(large)) > 0;
}

static bool use_send(void)
{
	return send(conn, WORD, WORD_LEN, MSG_NOSIGNAL) == WORD_LEN;
}

static bool use_sendmsg(void)
{
	struct iovec iov = { WORD, WORD_LEN };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(conn, &msg, 0) == WORD_LEN;
}

static bool use_read(void)
{
	return use_write() && read(conn, word, WORD_LEN) > 0;
}

static bool use_readv(void)
{
	struct iovec iov[] = { { word, 2 }, { word + 2, 3 } };

	return use_write() && readv(conn, iov, 2) > 0;
}

static bool use_recv(void)
{
	return use_write() && recv(conn, word, WORD_LEN, MSG_WAITALL) == WORD_LEN;
}

static bool use_peek(void)
{
	return use_write() && recv(conn, word, WORD_LEN, MSG_PEEK) > 0;
}

static bool use_recvmsg(void)
{
	struct iovec iov = { word, WORD_LEN };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return use_write() && recvmsg(conn, &msg, 0) > 0;
}

static bool use_poll(void)
{
	struct pollfd pollfd = { conn, POLLIN, 0 };

	return use_write() && poll(&pollfd, 1, WAIT_MS) == 1;
}

static bool use_select(void)
{
	struct timeval timeout = { WAIT_MS / 1000, 0 };
	static fd_set in;

	FD_ZERO(&in);
	FD_SET(conn, &in);
	return use_write() && select(conn + 1, &in, NULL, NULL, &timeout) == 1;
}

static bool use_pselect(void)
{
	static fd_set out;

	FD_ZERO(&out);
	FD_SET(conn, &out);
	return pselect(conn + 1, NULL, &out, NULL, NULL, NULL) == 1;
}

static bool use_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool right = epoll_ctl(set, EPOLL_CTL_ADD, conn, &event) == 0 && use_write() &&
		     epoll_wait(set, &event, 1, WAIT_MS) == 1;

	close(set);
	return right;
}

static bool use_sendfile(void)
{
	return sendfile(conn, file, NULL, 5000) == 5000;
}

static bool use_splice(void)
{
	return write(pipes[1], WORD, WORD_LEN) == WORD_LEN &&
	       splice(pipes[0], NULL, conn, NULL, WORD_LEN, 0) == WORD_LEN &&
	       splice(conn, NULL, pipes[1], NULL, WORD_LEN, 0) > 0;
}

static bool use_rights(void)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { word, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd;

	memcpy(CMSG_DATA(&control.header), &conn, sizeof(conn));
	if (sendmsg(local[0], &msg, 0) != 1 || recvmsg(local[1], &msg, 0) != 1)
		return false;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return write(fd, WORD, WORD_LEN) == WORD_LEN && close(fd) == 0;
}

static bool use_dup(void)
{
	int second = dup(conn), third = fcntl(conn, F_DUPFD_CLOEXEC, 100);

	return dup2(conn, second) == second && dup3(conn, third, O_CLOEXEC) == third &&
	       write(second, WORD, WORD_LEN) == WORD_LEN && close(second) == 0 && close(third) == 0;
}

static bool use_options(void)
{
	int value = 1, queued;
	socklen_t len = sizeof(value);
	struct sockaddr_in name;
	socklen_t name_len = sizeof(name);

	return setsockopt(conn, SOL_SOCKET, SO_KEEPALIVE, &value, len) == 0 &&
	       getsockopt(conn, SOL_SOCKET, SO_ERROR, &value, &len) == 0 && value == 0 &&
	       ioctl(conn, FIONREAD, &queued) == 0 &&
	       getpeername(conn, (struct sockaddr *)&name, &name_len) == 0 &&
	       name.sin_port == server.sin_port;
}

static bool use_shutdown(void)
{
	return shutdown(conn, SHUT_WR) == 0 && read(conn, word, 1) == 0;
}

static bool use_close(void)
{
	int second = dup(conn);

	return close(conn) == 0 && (conn = second) >= 0;
}

/* The client is a child, whose own connection it is. */
static bool use_accept(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), accepted;
	pid_t child;

	if (bind(listener, (struct sockaddr *)&name, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&name, &len))
		return false;
	child = fork();
	if (child == 0) {
		int client = socket(AF_INET, SOCK_STREAM, 0);
		bool right = connect(client, (struct sockaddr *)&name, len) == 0 &&
			     write(client, WORD, WORD_LEN) == WORD_LEN &&
			     read(client, word, 1) == 0;

		_exit(!right);
	}
	accepted = accept(listener, NULL, NULL);
	return recv(accepted, word, WORD_LEN, MSG_WAITALL) == WORD_LEN && close(accepted) == 0 &&
	       close(listener) == 0 && ends_well(child);
}

static bool use_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(!use_write());
	return ends_well(child);
}

static bool use_vfork_execve(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execve("/bin/true", arguments, no_environment);
		_exit(1);
	}
	return ends_well(child);
}

static bool use_vfork_execl(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execl("/bin/true", "true", "1", "2", (char *)NULL);
		_exit(1);
	}
	return ends_well(child);
}

static bool use_vfork_execlp(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	return ends_well(child);
}

static bool use_vfork_execle(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execle("/bin/true", "true", (char *)NULL, no_environment);
		_exit(1);
	}
	return ends_well(child);
}

static bool use_spawn(void)
{
	pid_t child;

	return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, no_environment) == 0 &&
	       ends_well(child);
}

static volatile sig_atomic_t peeked;

static void on_signal(int sig)
{
	(void)sig;
	/* The echo has been read. */
	peeked = recv(conn, word, 1, MSG_DONTWAIT | MSG_PEEK) == -1 && errno == EAGAIN;
}

static bool use_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	peeked = 0;
	return sigaction(SIGUSR1, &action, NULL) == 0 && use_recv() && raise(SIGUSR1) == 0 &&
	       peeked;
}

const struct each_use each_uses[] = {
	{ "write", use_write },
	{ "writev", use_writev },
	{ "large_write", use_large_write },
	{ "send", use_send },
	{ "sendmsg", use_sendmsg },
	{ "read", use_read },
	{ "readv", use_readv },
	{ "recv", use_recv },
	{ "peek", use_peek },
	{ "recvmsg", use_recvmsg },
	{ "poll", use_poll },
	{ "select", use_select },
	{ "pselect", use_pselect },
	{ "epoll", use_epoll },
	{ "sendfile", use_sendfile },
	{ "splice", use_splice },
	{ "rights", use_rights },
	{ "dup", use_dup },
	{ "options", use_options },
	{ "shutdown", use_shutdown },
	{ "close", use_close },
	{ "accept", use_accept },
	{ "fork", use_fork },
	{ "vfork_execve", use_vfork_execve },
	{ "vfork_execl", use_vfork_execl },
	{ "vfork_execlp", use_vfork_execlp },
	{ "vfork_execle", use_vfork_execle },
	{ "spawn", use_spawn },
	{ "signal", use_signal },
	{ NULL, NULL },
};
