// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks at the first bytes each time that the loop calls. Until then the program's bytes stay in the pair. One timer serves all
// clients, which all have the same time: the list has the oldest first.
#include "xsock/proxy/line_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/setting.h"
#include "crypto/libcrypto.h"
#include "xsock/base/ip.h"
#include "xsock/base/sockopt.h"
#include "xsock/base/startup_time.h"
#include "xsock/framed/first_bytes.h"
#include "xsock/framed/hello.h"
#include "xsock/framed/tls_start.h"
#include "xsock/proxy/closer.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/line_record.h"
#include "xsock/proxy/loop.h"

#define NS INT64_C(1000000000)

struct line_client {
	struct aw_line line;
	int tcp, far;
	bool nodelay;
	bool secured; /* TLS is required: the endpoint judges a client that asks for no record, and answers it by an alert */
	struct aw_tls_start *start; /* TLS is required: from the client's first byte on */
	union aw_address remote;
	int64_t due_ns; /* the client's time is over then; 0: not in the list */
	struct line_client *before, *after;
	int error; /* the client is refused */
	bool ended; /* the client has ended its stream before a Request */
};

static void timer_ready(struct aw_loop_source *source, uint32_t events);

/* Returns whether the user wants records under TLS: another's server answers a client that asks for one by an alert. */
static bool has_records_under_tls(void)
{
	unsigned long word = 0; /* its index: on, off, tls */

	return aw_setting_parse(AW_SETTING_RECORD,
				secure_getenv(aw_setting_name(AW_SETTING_RECORD)),
				&word) == AW_SETTING_RIGHT &&
	       word == 2;
}

static struct line_client *oldest, *newest;
static struct aw_loop_source timer = { .fd = -1, .ready = timer_ready };

static struct line_client *client_of(struct aw_line *line)
{
	return (struct line_client *)line;
}

/* Returns what a call moves: nothing, and at_end where the client has ended its stream. */
static ssize_t move_nothing(const struct line_client *client, ssize_t at_end)
{
	if (client->error)
		return -client->error;
	return client->ended ? at_end : -EAGAIN;
}

static ssize_t client_send(struct aw_line *line, const struct iovec *iov, int flags)
{
	(void)iov;
	(void)flags;
	return move_nothing(client_of(line), -EPIPE);
}

static ssize_t client_recv(struct aw_line *line, const struct iovec *iov, int flags)
{
	(void)iov;
	(void)flags;
	return move_nothing(client_of(line), 0);
}

/* Does nothing: nothing has been sent. */
static void client_shutdown(struct aw_line *line, bool closed)
{
	(void)line;
	(void)closed;
}

/* Has the timer be ready when the oldest client's time is over; without clients it is off. */
static void timer_set(void)
{
	const int64_t due_ns = oldest ? oldest->due_ns : 0;
	const struct itimerspec due = { .it_value = { due_ns / NS, due_ns % NS } };

	(void)timerfd_settime(timer.fd, TFD_TIMER_ABSTIME, &due, NULL);
}

/* Returns whether there is a timer. */
static bool timer_open(void)
{
	int fd = timer.fd >= 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && aw_loop_set(&timer, fd, EPOLLIN) != 0)
		close(fd);
	return timer.fd >= 0;
}

static void list_add(struct line_client *client)
{
	client->before = newest;
	*(newest ? &newest->after : &oldest) = client;
	newest = client;
	if (client == oldest)
		timer_set();
}

static void list_remove(struct line_client *client)
{
	if (!client->due_ns)
		return;
	*(client->before ? &client->before->after : &oldest) = client->after;
	*(client->after ? &client->after->before : &newest) = client->before;
	client->due_ns = 0;
	if (!client->before)
		timer_set();
}

static void client_free(struct line_client *client)
{
	list_remove(client);
	aw_tls_start_free(client->start);
	free(client);
}

static void refuse_insecure(struct line_client *client, const char *cause)
{
	char text[INET6_ADDRSTRLEN] = "unknown";
	uint8_t ip[16];
	uint16_t port = 0;

	client->error = EPROTO;
	if (aw_ip_get(&client->remote.any, ip, &port))
		aw_ip_write(ip, text);
	if (client->secured && aw_log_has_room())
		aw_log(AW_LOG_ERROR, "connection refused peer %s port %u cause %s", text,
		       ntohs(port), cause);
}

/* The clients whose time is over are refused. That this side reads no more is what wakes their bridges. */
static void timer_ready(struct aw_loop_source *source, uint32_t events)
{
	int64_t now_ns = aw_now_ns();
	uint64_t count;

	(void)events;
	(void)!read(source->fd, &count, sizeof(count));
	while (oldest && oldest->due_ns <= now_ns) {
		struct line_client *client = oldest;

		list_remove(client);
		if (!client->ended && !client->error)
			refuse_insecure(client,
					"no tls handshake within 10 s: run its program under "
					"'anywarp sockets --tls require'");
		(void)shutdown(client->tcp, SHUT_RD);
	}
}

static void client_close(struct aw_line *line, bool abort)
{
	static const struct linger at_once = { .l_onoff = 1 };
	struct line_client *client = client_of(line);

	if (abort || client->error)
		(void)setsockopt(client->tcp, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	aw_closer_close(client->tcp);
	client_free(client);
}

static short client_ready(struct aw_line *line, size_t undelivered)
{
	const struct line_client *client = client_of(line);

	(void)undelivered;
	if (client->error)
		return POLLIN | POLLOUT | POLLERR;
	return client->ended ? POLLIN | POLLOUT | POLLRDHUP : 0;
}

static void client_fds(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS])
{
	const struct line_client *client = client_of(line);

	/* EPOLLOUT: a part of the handshake may wait for room. */
	fds[0] = (struct aw_line_fd){ client->tcp, EPOLLIN | EPOLLRDHUP | EPOLLET |
							   (client->secured ? EPOLLOUT : 0) };
	fds[1] = (struct aw_line_fd){ .fd = -1 };
}

static bool client_arm(struct aw_line *line)
{
	(void)line;
	return true;
}

static int client_error(struct aw_line *line)
{
	return client_of(line)->error;
}

static bool client_at_mark(struct aw_line *line)
{
	(void)line;
	return false;
}

static size_t client_unsent(struct aw_line *line)
{
	(void)line;
	return 0;
}

/* The program's end of the stream waits for the line that takes this one's place. */
static size_t client_owed(struct aw_line *line)
{
	const struct line_client *client = client_of(line);

	return !client->error && !client->ended;
}

static void client_set_option(struct aw_line *line, int level, int name, int value)
{
	(void)setsockopt(client_of(line)->tcp, level, name, &value, sizeof(value));
}

static void client_set_linger(struct aw_line *line, const struct linger *linger)
{
	(void)setsockopt(client_of(line)->tcp, SOL_SOCKET, SO_LINGER, linger, sizeof(*linger));
}

static void client_stats(struct aw_line *line, struct aw_xs_stats *stats)
{
	(void)line;
	*stats = (struct aw_xs_stats){ .state = AW_XS_CONNECTING };
}

static int secure_record(struct aw_record *record, const struct line_client *client)
{
	struct aw_record_secrets secrets;
	int err;

	if (!aw_libcrypto_load(NULL))
		return -EOPNOTSUPP;
	aw_tls_start_copy_secrets(client->start, &secrets);
	err = aw_record_secure(record, client->tcp, &secrets);
	explicit_bzero(&secrets, sizeof(secrets));
	return err;
}

/* Begins the record, whose slot is this process's alone. Under TLS the handshake is over. */
static struct aw_line *begin_record(const struct line_client *client)
{
	uint8_t hello[AW_XS_HELLO_LEN];
	struct aw_line_record_start start = { .tcp = client->tcp, .far = client->far, .near = -1 };
	struct aw_record *record;
	struct aw_line *line = NULL;
	int on = 1, err = 0;

	if (aw_share_make(&start.share) != 0)
		return NULL;
	record = &start.share.slot->record;
	aw_hello_fill(hello, client->start);
	if (client->start)
		err = secure_record(record, client);
	else
		aw_record_init(record);
	if (!err && aw_record_take_request(record, client->tcp) == 0) {
		aw_record_respond(record, hello, sizeof(hello));
		record->rx.in_line = aw_sockopt_int(client->tcp, SOL_SOCKET, SO_OOBINLINE, 0);
		(void)setsockopt(client->tcp, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
		line = aw_line_of_record(&start);
	}
	if (!line) {
		aw_record_forget_keys(record);
		aw_share_put(&start.share);
	} else
		(void)aw_record_answer(record, client->tcp);
	return line;
}

/* Returns whether the peer has ended its stream: all its bytes are there. */
static bool has_ended(int tcp)
{
	struct pollfd end = { .fd = tcp, .events = POLLRDHUP };

	return poll(&end, 1, 0) == 1;
}

/* Goes on with the handshake of a client that has sent something. Returns what it asks for. */
static enum aw_first_bytes shake_hands(struct line_client *client)
{
	struct aw_tls_start_wait wait;
	size_t wanted;

	if (!client->start)
		client->start = aw_tls_start_create(true);
	if (!client->start)
		return AW_FIRST_BYTES_ENDPOINT;
	switch (aw_tls_start_step(client->start, client->tcp, &wait)) {
	case AW_TLS_START_LATER:
		break;
	case AW_TLS_START_DONE:
		if (aw_tls_start_has_record(client->tcp, &wanted) || has_ended(client->tcp))
			return AW_FIRST_BYTES_RECORD;
		break;
	case AW_TLS_START_OTHER:
		aw_tls_start_free(client->start);
		client->start = NULL;
		return AW_FIRST_BYTES_ENDPOINT;
	case AW_TLS_START_FAILED:
		refuse_insecure(client, aw_tls_start_cause(client->start));
		break;
	}
	return AW_FIRST_BYTES_MORE;
}

static struct aw_line *client_become(struct aw_line *line)
{
	struct line_client *client = client_of(line);
	struct aw_line *next = NULL;
	uint8_t bytes[AW_FIRST_BYTES_MAX];
	enum aw_first_bytes asked = AW_FIRST_BYTES_MORE;
	size_t missing;
	ssize_t got;
	bool is_all;

	if (client->error || client->ended)
		return NULL;
	is_all = has_ended(client->tcp);
	got = recv(client->tcp, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (client->start || (got > 0 && client->secured && has_records_under_tls()))
		asked = shake_hands(client);
	else if (got > 0)
		asked = client->secured ? AW_FIRST_BYTES_ENDPOINT
					: aw_first_bytes_judge(bytes, (size_t)got, &missing);
	switch (asked) {
	case AW_FIRST_BYTES_RECORD:
	case AW_FIRST_BYTES_ENDPOINT:
		next = asked == AW_FIRST_BYTES_RECORD
			       ? begin_record(client)
			       : aw_conns_make_line(false, client->nodelay, &client->tcp);
		if (next)
			client_free(client);
		else
			client->error = ECONNRESET;
		break;
	case AW_FIRST_BYTES_STRANGE:
		client->error = EPROTO;
		break;
	case AW_FIRST_BYTES_MORE:
		if (client->start)
			break;
		client->ended = got == 0;
		if (got < 0 && errno != EAGAIN)
			client->error = errno;
		else if (got > 0 && is_all)
			client->error = EPROTO;
		break;
	}
	return next;
}

struct aw_line *aw_line_of_client(const struct aw_request *request, int tcp, int far)
{
	static const struct aw_line_ops ops = {
		.send = client_send,
		.recv = client_recv,
		.shutdown = client_shutdown,
		.close = client_close,
		.ready = client_ready,
		.fds = client_fds,
		.arm = client_arm,
		.error = client_error,
		.at_mark = client_at_mark,
		.unsent = client_unsent,
		.owed = client_owed,
		.set_option = client_set_option,
		.set_linger = client_set_linger,
		.stats = client_stats,
		.become = client_become,
	};
	struct line_client *client = timer_open() ? malloc(sizeof(*client)) : NULL;
	int one = 1;

	if (!client)
		return NULL;
	*client = (struct line_client){
		.line = { &ops },
		.tcp = tcp,
		.far = far,
		.nodelay = request->nodelay,
		.secured = aw_setting_wants_tls(),
		.remote = request->remote,
		.due_ns = aw_now_ns() + AW_PEER_STARTUP_MS * (NS / 1000),
	};
	list_add(client);
	/* The program's mark would hide the Request, which is none of its bytes. */
	(void)setsockopt(tcp, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	return &client->line;
}
