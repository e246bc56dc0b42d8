// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "xsock/base/fds.h"

#define NOBODY 65534

static void start_proxy(struct scene *s)
{
	int ends[2], on = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	s->proxy = fork();
	if (s->proxy == 0) {
		dup2(ends[1], AW_PROXY_CONTROL);
		fcntl(AW_PROXY_CONTROL, F_SETFD, 0);
		unsetenv("XDG_RUNTIME_DIR");
		execl(PROXY, PROXY, NULL);
		_exit(127);
	}
	s->control = ends[0];
	close(ends[1]);
}

struct aw_request new_request(enum aw_request_kind kind)
{
	return (struct aw_request){ .magic = AW_REQUEST_MAGIC, .kind = (uint8_t)kind, .fd = -1 };
}

void tell(const struct scene *s, const struct aw_request *request, const int *fds, int count)
{
	assert_int_equal(aw_fds_send(s->control, request, sizeof(*request), fds, count, 0), 0);
}

int ask(const struct scene *s, const struct aw_request *request, const int *about, int count,
	struct aw_reply *answer)
{
	struct timeval limit = { .tv_sec = PATIENCE_S };
	int ends[2], fds[AW_REQUEST_FDS];
	ssize_t got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	memcpy(fds, about, sizeof(int) * (size_t)count);
	fds[count] = ends[1];
	tell(s, request, fds, count + 1);
	close(ends[1]);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	got = recv(ends[0], answer, sizeof(*answer), 0);
	assert_false(got < 0); /* it is alive */
	close(ends[0]);
	return got == (ssize_t)sizeof(*answer) ? answer->error : NO_ANSWER;
}

int option(const struct scene *s, enum aw_request_kind kind, int near, int value,
	   struct aw_reply *answer)
{
	struct aw_request request = new_request(kind);

	request.level = SOL_SOCKET;
	request.name = SO_KEEPALIVE;
	request.len = sizeof(value);
	memcpy(request.value, &value, sizeof(value));
	return ask(s, &request, &near, near >= 0, answer);
}

int keepalive(const struct scene *s)
{
	struct aw_reply answer;
	int value;

	assert_int_equal(option(s, AW_REQUEST_GET_OPTION, s->near, 0, &answer), 0);
	memcpy(&value, answer.value, sizeof(value));
	return value;
}

int listen_at(int port)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_port = htons((uint16_t)port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 && listen(fd, 8) == 0)
		return fd;
	close(fd);
	return -1;
}

int dial(int listener)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	getsockname(listener, (struct sockaddr *)&to, &len);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
	return fd;
}

int setup(void **state)
{
	struct aw_request request = new_request(AW_REQUEST_START);
	struct scene *s = calloc(1, sizeof(*s));
	int ends[2];

	start_proxy(s);
	s->listener = listen_at(0);
	s->tcp = dial(s->listener);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	request.role = 1;
	tell(s, &request, (int[]){ s->tcp, ends[1], ends[0] }, 3);
	close(ends[1]);
	s->near = ends[0];
	assert_int_equal(keepalive(s), 0);
	*state = s;
	return 0;
}

int teardown(void **state)
{
	struct scene *s = *state;
	int status;

	assert_int_equal(keepalive(s), 0); /* it lives, and has it unchanged */
	kill(s->proxy, SIGKILL); /* its connection's peer has yet to answer */
	assert_int_equal(waitpid(s->proxy, &status, 0), s->proxy);
	close(s->control);
	close(s->near);
	close(s->tcp);
	close(s->listener);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	free(s);
	return 0;
}

void as_another(void (*act)(const struct scene *s), const struct scene *s)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
			_exit(2);
		act(s);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED)
		skip();
	assert_int_equal(status, 0);
}
