// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scenes of extended.c: how a connection ends, by the close of its fds, SO_LINGER, exit(3), and the end of its process.
#define _GNU_SOURCE /* close_range, vfork */
#include <anywarp/sockets.h>

#include "extended.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

#define PAGE (1 << 20)
#define HIGH 900 /* an fd beyond those that the library has opened here */
#define OUTLIVES_S 300
#define FULL_MS 300 /* a socket that is not writable for so long is full */

static uint8_t page[PAGE], other[PAGE];

/* A connection ends with its process, though a child lives on. */
static void outlived_serve(int fd)
{
	struct iwarp_completion done;
	pid_t outliver;

	read_all(fd, &outliver, sizeof(outliver));
	NEED(iwarp_recv_async(fd, page, 1, 1) == 0);
	done = next_completion(fd);
	NEED(!done.bytes && (!done.error || done.error == ECONNRESET));
	NEED(kill(outliver, SIGKILL) == 0);
}

static void outlived_ask(int fd)
{
	pid_t outliver = fork();

	NEED(outliver >= 0);
	if (!outliver) {
		close(fd);
		alarm(limit_s(OUTLIVES_S));
		pause();
	}
	NEED(iwarp_send_async(fd, &outliver, sizeof(outliver), 1) == 0);
	(void)next_completion(fd);
	raise(SIGKILL);
}

static void await_end_of(pid_t process)
{
	struct pollfd pollfd = { .events = POLLIN };

	pollfd.fd = (int)syscall(SYS_pidfd_open, process, 0);
	NEED(pollfd.fd >= 0 && poll(&pollfd, 1, -1) == 1);
	close(pollfd.fd);
}

/* The peer takes nothing until this process is gone. */
static void leaves_unheard_serve(int fd)
{
	pid_t leaver;

	read_all(fd, &leaver, sizeof(leaver));
	await_end_of(leaver);
	while (read(fd, page, sizeof(page)) > 0)
		;
}

static void leaves_unheard_ask(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
	pid_t leaver = getpid();

	write_all(fd, &leaver, sizeof(leaver));
	NEED(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	while (poll(&pollfd, 1, FULL_MS) == 1)
		(void)!write(fd, other, sizeof(other));
	exit_out_of_time();
}

/* A region that is still registered does not keep the connection up. */
static void closes_with_a_region_serve(int fd)
{
	struct iwarp_mr *mr = offer(fd, page, sizeof(page), IWARP_REMOTE_WRITE);
	pid_t writer;

	read_all(fd, &writer, sizeof(writer));
	close(fd);
	scene_has_closed = true;
	await_end_of(writer);
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void closes_with_a_region_ask(int fd)
{
	pid_t writer = getpid();

	signal(SIGPIPE, SIG_IGN);
	(void)take_key(fd);
	write_all(fd, &writer, sizeof(writer));
	while (write(fd, other, sizeof(other)) > 0)
		;
	NEED(errno == EPIPE || errno == ECONNRESET);
}

/* SO_LINGER with a time has the close wait until the peer can have all; with none, it is a reset. */
static void lingers_serve(int fd)
{
	size_t at = 0;
	ssize_t got;

	while (at < PAGE && (got = read(fd, page, sizeof(page))) > 0) {
		at += (size_t)got;
	}
	NEED(at == PAGE);
}

static void lingers_ask(int fd)
{
	const struct linger wait = { 1, 60 };

	NEED(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)) == 0);
	write_all(fd, other, sizeof(other));
	close(fd);
	raise(SIGKILL);
}

static void lingers_not_serve(int fd)
{
	char octet;

	read_all(fd, &octet, 1);
	NEED_ERRNO(read(fd, &octet, 1), ECONNRESET);
}

static void lingers_not_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), 0);
	struct linger reset = { 1, 0 };
	socklen_t len = sizeof(reset);

	NEED(mr && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, len) == 0);
	reset.l_onoff = 0;
	NEED(getsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, &len) == 0 && reset.l_onoff);
	await_taken(fd);
	close(fd);
	scene_has_closed = true;
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* The queue lives as long as any fd of the connection, and its fd no longer. */
static void closes_one_by_one_serve(int fd)
{
	int copy = dup(fd), queue = iwarp_cq_fd(fd), other_end = open("/dev/null", O_RDONLY);
	char octet;

	NEED(iwarp_recv_async(fd, &octet, 1, 7) == 0);
	NEED(dup2(other_end, fd) == fd); /* our caller will close the number again */
	write_all(copy, "", 1);
	NEED(next_completion(copy).cookie == 7);
	NEED(fcntl(queue, F_GETFD) >= 0);
	NEED(iwarp_recv_async(copy, page, 1, 8) == 0);
	close(copy);
	NEED_ERRNO(fcntl(queue, F_GETFD), EBADF);
	close(other_end);
}

/* Both fds of the connection at once. */
static void closes_a_range_serve(int fd)
{
	int queue = iwarp_cq_fd(fd);

	NEED(dup2(fd, HIGH) == HIGH && dup2(fd, HIGH + 1) == HIGH + 1);
	close(fd);
	scene_has_closed = true;
	write_all(HIGH, "", 1);
	read_all(HIGH, page, 1);
	NEED(iwarp_recv_async(HIGH, page, 1, 8) == 0);
	NEED(fcntl(queue, F_GETFD) >= 0);
	NEED(close_range(HIGH, HIGH + 1, 0) == 0);
	NEED_ERRNO(fcntl(queue, F_GETFD), EBADF);
}

/* A child that shares this process's memory and closes its own fds closes none of this process's. */
static void closes_in_a_vfork_child_serve(int fd)
{
	int queue = iwarp_cq_fd(fd);
	pid_t borrower = vfork();

	if (borrower == 0) {
		close(fd);
		_exit(0);
	}
	NEED(waitpid(borrower, NULL, 0) == borrower);
	NEED(iwarp_cq_fd(fd) == queue);
	write_all(fd, "", 1);
	read_all(fd, page, 1);
}

static void closes_one_by_one_ask(int fd)
{
	char octet;

	read_all(fd, &octet, 1);
	write_all(fd, &octet, 1);
	NEED(read(fd, &octet, 1) == 0);
}

const struct scene end_scenes[] = {
	{ "outlived", outlived_serve, outlived_ask, SIGKILL },
	{ "leaves_unheard", leaves_unheard_serve, leaves_unheard_ask, 0 },
	{ "closes_with_a_region", closes_with_a_region_serve, closes_with_a_region_ask, 0 },
	{ "lingers", lingers_serve, lingers_ask, SIGKILL },
	{ "lingers_not", lingers_not_serve, lingers_not_ask, 0 },
	{ "closes_one_by_one", closes_one_by_one_serve, closes_one_by_one_ask, 0 },
	{ "closes_a_range", closes_a_range_serve, closes_one_by_one_ask, 0 },
	{ "closes_in_a_vfork_child", closes_in_a_vfork_child_serve, closes_one_by_one_ask, 0 },
	{ NULL, NULL, NULL, 0 },
};
