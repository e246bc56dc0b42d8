// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket that a proxy process lends comes alone, and is TCP's, whatever else a proxy process sends.
#include "../lib/proc.h"
#include "xsock/process/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xsock/base/fds.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/spawn.h"

_Atomic(bool) aw_sandbox_on;
static int uses;

int aw_spawn_proxy(int control)
{
	(void)control;
	return ENOSYS;
}

/* A proxy process that answers one order, and sends those fds beside it. */
static pid_t start_proxy(int control, const int *fds, int count)
{
	char room[CMSG_SPACE(2 * sizeof(int))];
	struct aw_reply answer = { 0 };
	struct aw_request request;
	struct iovec iov = { &request, sizeof(request) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	pid_t pid = fork();
	int got[2]; /* near, reply */

	if (pid != 0)
		return pid;
	if (recvmsg(control, &msg, 0) != (ssize_t)sizeof(request) || !CMSG_FIRSTHDR(&msg))
		_exit(1);
	memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
	_exit(aw_fds_send(got[1], &answer, sizeof(answer), fds, count, 0));
}

static void use(int tcp, void *arg)
{
	(void)tcp;
	(void)arg;
	uses++;
}

static int borrow(const int *fds, int count)
{
	int control[2], near[2], status, err, before;
	pid_t proxy;

	uses = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, near), 0);
	proxy = start_proxy(control[1], fds, count);
	close(control[1]);
	aw_proxy_import(control[0]);
	before = proc_fds();
	err = aw_proxy_borrow_socket(near[0], use, NULL);
	assert_int_equal(proc_fds(), before);
	assert_int_equal(waitpid(proxy, &status, 0), proxy);
	assert_int_equal(status, 0);
	close(control[0]);
	close(near[0]);
	close(near[1]);
	return err;
}

static void lent__is_used_and_closed(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(borrow(&tcp, 1), 0);
	assert_int_equal(uses, 1);
	close(tcp);
}

static void lent__leaves_no_second_one(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	(void)borrow((int[]){ tcp, tcp }, 2);
	assert_in_range(uses, 0, 1);
	close(tcp);
}

static void lent__is_tcp(void **state)
{
	int odd[] = { socket(AF_INET, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_STREAM, 0),
		      STDIN_FILENO };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		assert_int_not_equal(borrow(&odd[i], 1), 0);
		assert_int_equal(uses, 0);
	}
	close(odd[0]);
	close(odd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lent__is_used_and_closed),
		cmocka_unit_test(lent__leaves_no_second_one),
		cmocka_unit_test(lent__is_tcp),
	};

	return cmocka_run_group_tests_name("lent", tests, NULL, NULL);
}
