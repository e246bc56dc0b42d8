// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// getsockopt, setsockopt, fcntl and ioctl, before a connection and in it.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);
	CHECK(!getsockopt(fd, level, name, &value, &len) && len == sizeof(value));
	return value;
}

static void set_option(int fd, int level, int name, int value)
{
	CHECK(!setsockopt(fd, level, name, &value, sizeof(value)));
}

static void touch(struct ends *e)
{
	send_text(e->client, "there");
	expect_text(e->server, "there");
	send_text(e->server, "back");
	expect_text(e->client, "back");
}

static void option_kind(void)
{
	struct ends e;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		int fds[] = { e.client, e.server };
		for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
			CHECK(option(fds[i], SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
			CHECK(option(fds[i], SOL_SOCKET, SO_DOMAIN) == AF_INET);
			CHECK(option(fds[i], SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP);
			CHECK(option(fds[i], SOL_SOCKET, SO_ACCEPTCONN) == 0);
			CHECK(option(fds[i], SOL_SOCKET, SO_ERROR) == 0);
		}
		touch(&e);
	}
	CHECK(option(e.listener, SOL_SOCKET, SO_ACCEPTCONN) == 1);
}

struct setting {
	int level, name, value;
};

static const struct setting settings[] = {
	{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 77 }, { IPPROTO_TCP, TCP_KEEPINTVL, 7 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 3 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, 54321 },
	{ SOL_SOCKET, SO_REUSEADDR, 1 },   { SOL_SOCKET, SO_OOBINLINE, 1 },
	{ IPPROTO_IP, IP_TOS, 0x10 },	   { SOL_SOCKET, SO_PRIORITY, 3 },
	{ IPPROTO_TCP, TCP_NODELAY, 0 },   { IPPROTO_TCP, TCP_CORK, 1 },
	{ SOL_SOCKET, SO_RCVLOWAT, 5 },	   { SOL_SOCKET, SO_DONTROUTE, 1 },
};

/* What was set before a connection, at its begin and in its midst is what can be read later. */
static void option_kept(void)
{
	for (int when = 0; when < 3; when++) {
		struct sockaddr_in name;
		int listener = listener_open(&name);
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		struct ends e = { listener, fd, -1 };
		for (int step = 0; step < 3; step++) {
			for (size_t i = 0; step == when && i < ARRAY_LEN(settings); i++)
				set_option(fd, settings[i].level, settings[i].name,
					   settings[i].value);
			if (step == 0) {
				CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
				e.server = accept(listener, NULL, NULL);
			} else if (step == 1) {
				set_option(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
				touch(&e);
			}
		}
		for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
			const struct setting *s = &settings[i];
			bool later = s->name == TCP_NODELAY && s->value;
			bool shrunk = s->level == SOL_SOCKET && s->name == SO_RCVLOWAT && when < 2;
			CHECK(later || shrunk || option(fd, s->level, s->name) == s->value);
		}
		close(fd);
		close(e.server);
		close(listener);
	}
}

static void option_buffers(void)
{
	struct ends e;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		int before = option(e.client, SOL_SOCKET, SO_SNDBUF);
		CHECK(before > 0 && option(e.client, SOL_SOCKET, SO_RCVBUF) > 0);
		set_option(e.client, SOL_SOCKET, SO_SNDBUF, 30000);
		CHECK(option(e.client, SOL_SOCKET, SO_SNDBUF) == 60000);
		set_option(e.server, SOL_SOCKET, SO_RCVBUF, 40000);
		CHECK(option(e.server, SOL_SOCKET, SO_RCVBUF) == 80000);
		touch(&e);
	}
	/* Whatever is set, somewhere it is full. */
	size_t taken = fill_up(e.client);
	CHECK(taken > 0 && taken < 64 << 20);
	expect_pattern(e.server, taken);
}

static void option_info(void)
{
	struct ends e;
	struct tcp_info info;
	socklen_t len = sizeof(info);
	ends_open(&e);
	touch(&e);
	CHECK(!getsockopt(e.client, IPPROTO_TCP, TCP_INFO, &info, &len));
	CHECK(info.tcpi_state == TCP_ESTABLISHED);
	CHECK(option(e.client, IPPROTO_TCP, TCP_MAXSEG) > 0);
}

static void option_bad(void)
{
	struct ends e;
	int value = 1;
	socklen_t len = sizeof(value);
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(setsockopt(e.client, SOL_SOCKET, 9999, &value, sizeof(value)) == -1);
		CHECK(errno == ENOPROTOOPT);
		CHECK(getsockopt(e.client, IPPROTO_TCP, 9999, &value, &len) == -1);
		CHECK(errno == ENOPROTOOPT);
		CHECK(setsockopt(e.client, SOL_SOCKET, SO_KEEPALIVE, &value, 1) == -1);
		CHECK(errno == EINVAL);
		/* IPv6's level on a socket of IPv4 */
		CHECK(getsockopt(e.client, 0x7777, 1, &value, &len) == -1);
		CHECK(errno == EOPNOTSUPP || errno == ENOPROTOOPT);
		touch(&e);
	}
}

static void fcntl_calls(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(fcntl(e.client, F_GETFL) == O_RDWR);
		set_nonblocking(e.client, true);
		CHECK(fcntl(e.client, F_GETFL) == (O_RDWR | O_NONBLOCK));
		CHECK(recv(e.client, &octet, 1, 0) == -1 && errno == EAGAIN);
		set_nonblocking(e.client, false);
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC) && fcntl(e.client, F_GETFD) == 1);
		CHECK(!fcntl(e.client, F_SETFD, 0) && fcntl(e.client, F_GETFD) == 0);
		CHECK(!fcntl(e.client, F_SETOWN, getpid()) &&
		      fcntl(e.client, F_GETOWN) == getpid());
		int high = fcntl(e.client, F_DUPFD, 100),
		    exec = fcntl(e.client, F_DUPFD_CLOEXEC, 5);
		CHECK(high >= 100 && exec >= 5);
		CHECK(!fcntl(high, F_GETFD) && fcntl(exec, F_GETFD) == FD_CLOEXEC);
		send_text(high, "high");
		send_text(exec, "exec");
		expect_text(e.server, "highexec");
		CHECK(!close(high) && !close(exec));
		CHECK(fcntl(high, F_GETFL) == -1 && errno == EBADF);
		touch(&e);
	}
}

static void ioctl_calls(void)
{
	struct ends e;
	int on = 1, off = 0, n = -1;
	char octet;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(!ioctl(e.server, FIONREAD, &n) && n == 0);
		CHECK(!ioctl(e.server, FIONBIO, &on));
		CHECK(fcntl(e.server, F_GETFL) & O_NONBLOCK);
		CHECK(recv(e.server, &octet, 1, 0) == -1 && errno == EAGAIN);
		CHECK(!ioctl(e.server, FIONBIO, &off));
		CHECK(!(fcntl(e.server, F_GETFL) & O_NONBLOCK));
		touch(&e);
	}
	send_text(e.client, "some octets");
	wait_readable_octets(e.server, 11);
	expect_text(e.server, "some ");
	wait_readable_octets(e.server, 6);
	expect_text(e.server, "octets");
	wait_readable_octets(e.server, 0);
	CHECK(!ioctl(e.server, FIOCLEX) && fcntl(e.server, F_GETFD) == FD_CLOEXEC);
	CHECK(!ioctl(e.server, FIONCLEX) && fcntl(e.server, F_GETFD) == 0);
}

/* What is on its way can be seen, and is none once the peer has it. */
static void ioctl_unsent(void)
{
	struct ends e;
	int n = -1;
	ends_open(&e);
	touch(&e);
	size_t taken = fill_up(e.client);
	CHECK(!ioctl(e.client, TIOCOUTQ, &n) && n > 0);
	expect_pattern(e.server, taken);
	int64_t deadline = now_ms() + WAIT_MS;
	do {
		CHECK(!ioctl(e.client, TIOCOUTQ, &n) && now_ms() < deadline);
	} while (n);
}

static void ioctl_not_a_terminal(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	CHECK(!isatty(e.client) && (errno == ENOTTY || errno == EINVAL));
	CHECK(lseek(e.client, 0, SEEK_CUR) == -1 && errno == ESPIPE);
	char octet;
	CHECK(pread(e.client, &octet, 1, 0) == -1 && errno == ESPIPE);
	CHECK(ftruncate(e.client, 0) == -1 && errno == EINVAL);
}

static void names_without_room(void)
{
	struct sockaddr_in name;
	struct ends e;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		socklen_t len = sizeof(name);
		CHECK(getpeername(e.server, NULL, NULL) == -1 && errno == EFAULT);
		CHECK(getsockname(e.server, (struct sockaddr *)&name, NULL) == -1 &&
		      errno == EFAULT);
		CHECK(getpeername(e.client, NULL, &len) == -1 && errno == EFAULT);
		send_text(e.client, "word");
		expect_text(e.server, "word");
	}
}

static const int some_options[][2] = {
	{ SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_RCVBUF },    { SOL_SOCKET, SO_DOMAIN },
	{ SOL_SOCKET, SO_LINGER },    { IPPROTO_TCP, TCP_NODELAY },
};

/* A length is an int to the kernel, whatever its type says. */
static void option_lengths(void)
{
	struct ends e;
	ends_open(&e);
	for (size_t i = 0; i < 2 * ARRAY_LEN(some_options); i++) {
		struct linger value = { 0, 0 };
		socklen_t len = (socklen_t)-1;
		const int *option = some_options[i % ARRAY_LEN(some_options)];
		if (i == ARRAY_LEN(some_options)) {
			send_text(e.client, "first");
			expect_text(e.server, "first");
		}
		CHECK(getsockopt(e.client, option[0], option[1], &value, &len) == -1 &&
		      errno == EINVAL);
		CHECK(getsockopt(e.client, option[0], option[1], NULL, &len) == -1 &&
		      errno == EINVAL);
		CHECK(setsockopt(e.client, option[0], option[1], &value, len) == -1 &&
		      errno == EINVAL);
	}
}

static void expect_options_fault(int fd, void *nowhere)
{
	for (size_t i = 0; i < ARRAY_LEN(some_options); i++) {
		socklen_t len = sizeof(struct linger);
		int value, level = some_options[i][0], name = some_options[i][1];
		CHECK(getsockopt(fd, level, name, nowhere, &len) == -1 && errno == EFAULT);
		CHECK(getsockopt(fd, level, name, &value, nowhere) == -1 && errno == EFAULT);
		CHECK(name == SO_DOMAIN ||
		      (setsockopt(fd, level, name, nowhere, len) == -1 && errno == EFAULT));
	}
}

/* EFAULT is an error like others. */
static void no_memory_there(void)
{
	void *volatile null = NULL;
	void *nowhere = null;
	struct ends e;
	ends_open(&e);
	int fresh = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fresh, nowhere, sizeof(struct sockaddr_in)) == -1 && errno == EFAULT);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(sendmsg(e.server, nowhere, 0) == -1 && errno == EFAULT);
		CHECK(sendmmsg(e.server, nowhere, 1, 0) == -1 && errno == EFAULT);
		CHECK(recvmsg(e.server, nowhere, MSG_DONTWAIT) == -1 && errno == EFAULT);
		expect_options_fault(e.server, nowhere);
		send_text(e.client, "word");
		expect_text(e.server, "word");
	}
	struct sockaddr_in name;
	socklen_t negative = (socklen_t)-1;
	CHECK(getpeername(e.server, (struct sockaddr *)&name, &negative) == -1 && errno == EINVAL);
}

static bool has_message(const struct ends *e)
{
	char octet, control[256];
	struct iovec data = { &octet, 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	send_text(e->client, "y");
	CHECK(recvmsg(e->server, &msg, 0) == 1);
	return CMSG_FIRSTHDR(&msg);
}

/* Whoever may ask for a control message gets one; the kernel begins to take times a while after it was asked. */
static void option_messages(void)
{
	static const int options[][2] = {
		{ SOL_SOCKET, SO_TIMESTAMP },
		{ SOL_SOCKET, SO_TIMESTAMPNS },
		{ IPPROTO_TCP, TCP_INQ },
	};
	struct ends e;
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		int on = 1, off = 0, level = options[i][0], name = options[i][1];
		int64_t began = now_ms();
		if (setsockopt(e.server, level, name, &on, sizeof(on)) != 0) {
			CHECK(errno == ENOPROTOOPT);
			continue;
		}
		while (!has_message(&e))
			CHECK(now_ms() - began < WAIT_MS);
		CHECK(!setsockopt(e.server, level, name, &off, sizeof(off)));
	}
}

/* As linux/tcp.h has it, which does not go with libc's header. */
struct zerocopy {
	uint64_t address;
	uint32_t length, recv_skip_hint, inq;
	int32_t err;
	uint64_t copybuf_address;
	int32_t copybuf_len;
	uint32_t flags;
};

/* Whoever may ask for the stream's pages gets the stream's octets. */
static void option_takes_octets(void)
{
	struct ends e;
	char got[64];
	struct zerocopy zc = { 0 };
	socklen_t len = sizeof(zc);
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	send_text(e.client, "octets");
	wait_readable_octets(e.server, 6);
	zc.copybuf_address = (uintptr_t)got;
	zc.copybuf_len = sizeof(got);
	if (getsockopt(e.server, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len)) {
		CHECK(errno == ENOPROTOOPT || errno == EOPNOTSUPP);
		expect_text(e.server, "octets");
	} else {
		CHECK(zc.copybuf_len == 6 && !memcmp(got, "octets", 6));
	}
}

static const struct row rows[] = {
	{ "no_memory_there", no_memory_there },
	{ "names_without_room", names_without_room },
	{ "option_kind", option_kind },
	{ "option_kept", option_kept },
	{ "option_buffers", option_buffers },
	{ "option_info", option_info },
	{ "option_bad", option_bad },
	{ "option_messages", option_messages },
	{ "fcntl_calls", fcntl_calls },
	{ "ioctl_calls", ioctl_calls },
	{ "ioctl_unsent", ioctl_unsent },
	{ "ioctl_not_a_terminal", ioctl_not_a_terminal },
	{ "option_takes_octets", option_takes_octets },
	{ "option_lengths", option_lengths },
};
const struct rows option_rows = { rows, ARRAY_LEN(rows) };
