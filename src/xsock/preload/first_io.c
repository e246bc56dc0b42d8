// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides at the first touch. A client in `auto` asks the server; a server in `auto` looks for the key of
// the MPA Request, and where the program speaks first, whether the client has asked.
#include "xsock/preload/first_io.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/swap.h"
#include "xsock/preload/preamble.h"
#include "xsock/preload/probe.h"
#include "xsock/preload/wait.h"
#include "xsock/process/mode.h"
#include "xsock/process/proxy.h"
#include "xsock/process/watch.h"

#define KEY "MPA ID Req Frame" /* RFC 5044 7.1 */
#define KEY_LEN 16
#define OCTETS 1024 /* no Request is longer */

enum verdict {
	VERDICT_IWARP,
	VERDICT_RECORD, /* the same, and both ends have records */
	VERDICT_PLAIN,
	VERDICT_OVER, /* the fd is about to be closed, and the proxy process does the rest */
	VERDICT_REFUSED, /* the connect has failed */
	VERDICT_LATER, /* nothing to go by yet */
	VERDICT_FAILED, /* errno is the call's */
};

struct touched {
	int fd;
	enum aw_first_io kind;
	bool dontwait;
	const struct aw_deadline *by; /* until when it may wait at most, or NULL */
};

short aw_first_io_poll(int fd, short events, int timeout_ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(timeout_ms);
	struct pollfd pollfd = { .fd = fd, .events = events };
	struct timespec left;
	int ready;

	do
		ready = aw_libc()->ppoll(&pollfd, 1, aw_deadline_left(&deadline, &left), NULL);
	while (ready < 0 && errno == EINTR && timeout_ms >= 0);
	return ready > 0 ? pollfd.revents : 0;
}

/* Of ms, as long as the call may wait. */
static int at_most(const struct touched *t, int ms)
{
	return t->by ? aw_deadline_at_most_ms(t->by, ms) : ms;
}

static bool may_wait(const struct touched *t)
{
	return t->kind != AW_FIRST_POLL && !t->dontwait &&
	       !(aw_libc()->fcntl(t->fd, F_GETFL) & O_NONBLOCK);
}

/*
 * What a client's first bytes say. Whose end has records looks at all of a Request; where its time is over (wanted
 * NULL), the proxy process sees to what has not come. *wanted: of LATER, how many bytes there must be.
 */
static enum verdict read_octets(const uint8_t *octets, size_t got, size_t *wanted)
{
	size_t missing = KEY_LEN - got;

	if (memcmp(octets, KEY, got < KEY_LEN ? got : KEY_LEN) != 0)
		return VERDICT_PLAIN;
	if (got >= KEY_LEN && !aw_mode_records())
		return VERDICT_IWARP;
	if (got >= KEY_LEN) {
		switch (aw_framed_judge(octets, got, &missing)) {
		case AW_OFFER_WHOLE:
			return VERDICT_RECORD;
		case AW_OFFER_NONE:
			return VERDICT_IWARP;
		case AW_OFFER_MORE:
			break;
		}
	}
	if (!wanted)
		return got >= KEY_LEN ? VERDICT_IWARP : VERDICT_PLAIN;
	*wanted = got + missing;
	return VERDICT_LATER;
}

/* The first bytes look like a key but are too few: the rest, or another byte, comes soon. */
static enum verdict await_rest(int fd, int ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(ms);
	uint8_t octets[OCTETS];
	size_t wanted = KEY_LEN;
	enum verdict verdict;
	int before = 1;
	socklen_t len = sizeof(before);

	aw_libc()->getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, &len);
	do {
		int lowat = (int)wanted;
		short ready;
		ssize_t got;

		aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
		ready = aw_first_io_poll(fd, POLLIN, aw_deadline_at_most_ms(&deadline, ms));
		got = aw_libc()->recv(fd, octets, sizeof(octets), MSG_PEEK | MSG_DONTWAIT);
		verdict = got > 0 ? read_octets(octets, (size_t)got,
						ready && (size_t)got >= wanted ? &wanted : NULL)
				  : VERDICT_PLAIN;
	} while (verdict == VERDICT_LATER);
	aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, sizeof(before));
	return verdict;
}

static enum verdict judge_silent(int fd);

/* The time for the rest is over. */
static enum verdict judge_late(int fd)
{
	uint8_t octets[OCTETS];
	ssize_t got;

	if (!aw_mode_records())
		return VERDICT_PLAIN;
	got = aw_libc()->recv(fd, octets, sizeof(octets), MSG_PEEK | MSG_DONTWAIT);
	return got > 0 ? read_octets(octets, (size_t)got, NULL) : VERDICT_PLAIN;
}

/* Who must not wait looks again later. A write does not wait for who might be anybody, and has not asked. */
static enum verdict judge_rest(const struct touched *t, size_t got)
{
	enum verdict verdict;

	if (t->kind == AW_FIRST_CLOSE)
		return judge_silent(t->fd);
	if (t->kind == AW_FIRST_WRITE) {
		verdict = await_rest(t->fd, at_most(t, aw_probe_wait_ms(AW_FIRST_GRACE_MS)));
		if (verdict != VERDICT_PLAIN || judge_silent(t->fd) == VERDICT_PLAIN)
			return verdict;
		return await_rest(t->fd, at_most(t, aw_preamble_ms()));
	}
	if (may_wait(t))
		return await_rest(t->fd, aw_preamble_ms());
	if (!aw_preamble_lasts(t->fd, got))
		return judge_late(t->fd);
	errno = EAGAIN;
	return t->kind == AW_FIRST_POLL ? VERDICT_LATER : VERDICT_FAILED;
}

/* Something can be read: bytes, or the end. flags tell whether that is certain. */
static enum verdict judge_octets(const struct touched *t, int flags)
{
	uint8_t octets[OCTETS];
	ssize_t got = aw_libc()->recv(t->fd, octets, sizeof(octets), MSG_PEEK | flags);
	enum verdict verdict;
	size_t wanted;

	if (got <= 0)
		return got ? VERDICT_FAILED : VERDICT_PLAIN;
	verdict = read_octets(octets, (size_t)got, &wanted);
	return verdict == VERDICT_LATER ? judge_rest(t, (size_t)got) : verdict;
}

/* Behind a reset, too: a Request of a record's is none of the program's business. */
static bool has_octets(int fd)
{
	int count = 0;

	return aw_mode_records() && aw_libc()->ioctl(fd, FIONREAD, &count) == 0 && count > 0;
}

/* An error is left where it is, for the program. */
static enum verdict judge_readable(const struct touched *t, short revents)
{
	enum verdict verdict;

	if (revents & POLLERR && !has_octets(t->fd))
		return VERDICT_PLAIN;
	verdict = judge_octets(t, MSG_DONTWAIT);
	return verdict == VERDICT_FAILED ? VERDICT_LATER : verdict;
}

/* The program speaks first. If its client has not asked by now, it is told no if it ever does. */
static enum verdict judge_silent(int fd)
{
	struct aw_reply answer;
	struct aw_request request;

	aw_request_init(&request, AW_REQUEST_DECIDE);
	if (aw_proxy_call(&request, fd, &answer) != 0)
		return VERDICT_PLAIN;
	return answer.error ? VERDICT_PLAIN : VERDICT_IWARP;
}

#define LOOK_MS 10 /* at what other threads have made of the connection: its Request may be gone */

static short await_request(int fd, int ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(ms);
	short revents;

	do
		revents = aw_first_io_poll(fd, POLLIN, aw_deadline_at_most_ms(&deadline, LOOK_MS));
	while (!revents && !aw_deadline_is_over(&deadline) && aw_fdtab_state(fd) == AW_FD_PENDING);
	return revents;
}

/* In doubt the kernel has a read wait for more bytes than may ever come. */
static enum verdict judge_client(const struct aw_sock *sock, const struct touched *t)
{
	bool decides = t->kind == AW_FIRST_WRITE || t->kind == AW_FIRST_CLOSE;
	int grace_ms = t->kind == AW_FIRST_WRITE ? aw_probe_wait_ms(AW_FIRST_GRACE_MS) : 0;
	short revents;

	if (aw_preamble_is_over(sock))
		return judge_late(t->fd);
	if (t->kind == AW_FIRST_READ && sock->preamble_ns && may_wait(t))
		return await_rest(t->fd, aw_preamble_ms());
	if (t->kind == AW_FIRST_READ)
		return judge_octets(t, t->dontwait ? MSG_DONTWAIT : 0);
	revents = aw_first_io_poll(t->fd, POLLIN, at_most(t, grace_ms));
	if (revents)
		return judge_readable(t, revents);
	if (!decides)
		return VERDICT_LATER;
	if (judge_silent(t->fd) == VERDICT_PLAIN)
		return VERDICT_PLAIN;
	/* It was told yes. Did it hear that in time? A thread that closes does not wait to know. */
	if (t->kind == AW_FIRST_CLOSE && !aw_mode_records())
		return VERDICT_IWARP;
	if (t->kind == AW_FIRST_CLOSE && sock->fds == 1 && aw_farewell_request(t->fd))
		return VERDICT_OVER;
	revents = await_request(t->fd, at_most(t, aw_probe_patience_ms()));
	if (aw_fdtab_state(t->fd) != AW_FD_PENDING)
		return VERDICT_IWARP; /* another thread is at it, or was */
	return revents ? judge_readable(t, revents) : VERDICT_PLAIN;
}

/*
 * How long a server's answer may take: two round trips of the connection's, and 10 ms for the server's host. Where
 * the user wants iWARP in any case, a silent server costs the wait once in 10 seconds and a late answer costs the record:
 * there 100 ms, as a loaded host needs.
 */
static int answer_ms(int fd, enum aw_xs_mode mode)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	(void)aw_libc()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return aw_probe_wait_ms((mode == AW_XS_ON ? 100 : 10) + (int)(info.tcpi_rtt / 500));
}

static enum verdict judge_server(int fd, enum aw_xs_mode mode)
{
	struct sockaddr_storage local, remote;
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);

	if (aw_libc()->getsockname(fd, (struct sockaddr *)&local, &local_len) != 0 ||
	    aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &remote_len) != 0)
		return VERDICT_PLAIN;
	if (aw_first_io_poll(fd, POLLIN, 0))
		return VERDICT_PLAIN; /* who has spoken already speaks plainly */
	switch (aw_probe_server(&local, &remote, aw_mode_records(), answer_ms(fd, mode))) {
	case AW_PEER_TCP:
		return VERDICT_PLAIN;
	case AW_PEER_IWARP:
		return VERDICT_IWARP;
	case AW_PEER_RECORDS:
		return VERDICT_RECORD;
	}
	return VERDICT_PLAIN;
}

/* Whether connect has come to its end, waiting for it if the call may. */
static enum verdict judge_connect(const struct touched *t)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(remote);

	if (!aw_first_io_poll(t->fd, POLLOUT, 0)) {
		if (!may_wait(t)) {
			errno = EAGAIN;
			return t->kind == AW_FIRST_POLL ? VERDICT_LATER : VERDICT_FAILED;
		}
		if (!aw_first_io_poll(t->fd, POLLOUT, -1))
			return VERDICT_FAILED;
	}
	/* A connect that failed leaves a plain socket, which tells the error. */
	return aw_libc()->getpeername(t->fd, (struct sockaddr *)&remote, &len) == 0
		       ? VERDICT_IWARP
		       : VERDICT_REFUSED;
}

/* It has ended before a Request came: the kernel tells the program how. */
static bool is_over(int fd)
{
	short revents = aw_first_io_poll(fd, POLLRDHUP, 0);
	uint8_t octet;

	return revents & (POLLERR | POLLHUP) ||
	       (revents && aw_libc()->recv(fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

static enum verdict judge(const struct aw_sock *sock, const struct touched *t)
{
	enum verdict verdict;

	if (sock->state == AW_FD_CONNECTING) {
		verdict = judge_connect(t);
		if (verdict != VERDICT_IWARP)
			return verdict;
	}
	if (sock->mode == AW_XS_ON && (!aw_mode_records() || sock->extended))
		return VERDICT_IWARP;
	verdict = sock->role == AW_ROLE_ACTIVE ? judge_server(t->fd, sock->mode)
					       : judge_client(sock, t);
	return verdict == VERDICT_PLAIN && sock->mode == AW_XS_ON && !is_over(t->fd) ? VERDICT_IWARP
										     : verdict;
}

/* Another thread may have come to another verdict, and be at it: what it makes of the fd is what the call meets. */
static void await_start(const struct aw_sock *sock)
{
	while (sock->state == AW_FD_STARTING)
		aw_fdtab_wait();
}

static void go_plain(struct aw_sock *sock)
{
	aw_fdtab_lock();
	await_start(sock);
	if (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING) {
		aw_watch_narrow(sock);
		aw_preamble_end(sock);
		aw_fdtab_drop(sock);
	}
	aw_fdtab_unlock();
}

/* The program may try another address. Who is in connect will know better whether it has failed. */
static void go_back(struct aw_sock *sock)
{
	aw_fdtab_lock();
	await_start(sock);
	if (sock->state == AW_FD_CONNECTING && !sock->caller) {
		aw_watch_narrow(sock);
		aw_fdtab_set_state(sock, AW_FD_CANDIDATE);
	}
	aw_fdtab_unlock();
}

/*
 * A client in auto goes on plainly; to anything else the peer speaks MPA, or has to. How a connection has ended that ended
 * meanwhile the kernel tells the program.
 */
static int give_up(struct aw_sock *sock, int fd, int err)
{
	bool plain = (sock->mode == AW_XS_AUTO && sock->role == AW_ROLE_ACTIVE) ||
		     (err == ENOTCONN && is_over(fd));

	aw_xs_log(AW_XS_LOG_ERROR, "fd %d cannot be iWARP: %s%s", fd, strerror(err),
		  plain ? ", so it is TCP" : "");
	aw_fdtab_lock();
	aw_watch_narrow(sock);
	aw_fdtab_drop(sock);
	aw_fdtab_unlock();
	if (plain)
		return 0;
	aw_libc()->shutdown(fd, SHUT_RDWR);
	errno = err;
	return -1;
}

/* It is ours to start: STARTING from here on. Not by a number that was closed since. */
static bool claim(struct aw_sock *sock, int fd)
{
	bool claimed;

	aw_fdtab_lock();
	aw_fdtab_await_forks();
	await_start(sock);
	claimed = (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING) &&
		  aw_fdtab_get(fd) == sock;
	if (claimed) {
		aw_preamble_end(sock);
		aw_fdtab_set_state(sock, AW_FD_STARTING);
		aw_fdtab_let_wake(sock);
	}
	aw_fdtab_unlock();
	return claimed;
}

/* The proxy process answers a Request of a record's for want of a slot: its peer, which counts on a record, finds that out. */
static int start_claimed(struct aw_sock *sock, const struct touched *t, bool record)
{
	int err;

	if (record && aw_framed_start(sock, t->fd) == 0)
		return 0;
	if (aw_mode_records())
		aw_xs_log(AW_XS_LOG_INFO, "fd %d is no record", t->fd);
	err = aw_swap_socket(sock, t->fd, aw_swap_to_proxy);
	return err ? give_up(sock, t->fd, err) : 0;
}

/* stdio reads and writes the lowest fds inside libc. */
static void bridge_stdio(const struct aw_sock *sock)
{
	int fd;

	aw_fdtab_lock();
	fd = aw_fdtab_next(sock, -1);
	aw_fdtab_unlock();
	if (fd >= 0 && fd <= STDERR_FILENO)
		(void)aw_framed_bridge(fd);
}

/*
 * One thread starts, others wait for it: so would a handler of a signal that uses the fd, and for ever, and all of
 * them for a thread that is cancelled.
 */
static int start(struct aw_sock *sock, const struct touched *t, bool record)
{
	int cancel, result = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (claim(sock, t->fd))
		result = start_claimed(sock, t, record);
	bridge_stdio(sock);
	pthread_setcancelstate(cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int carry_out(struct aw_sock *sock, const struct touched *t, enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_IWARP:
	case VERDICT_RECORD:
		return start(sock, t, verdict == VERDICT_RECORD);
	case VERDICT_PLAIN:
	case VERDICT_OVER:
		go_plain(sock);
		return 0;
	case VERDICT_REFUSED:
		go_back(sock);
		return 0;
	case VERDICT_LATER:
		return 0;
	case VERDICT_FAILED:
		return -1;
	}
	return 0;
}

/* What fd's socket is like, held; NULL where there is nothing to decide any more. With the lock. */
static struct aw_sock *look_up(int fd)
{
	struct aw_sock *sock = aw_fdtab_get_started(fd);

	if (!sock || sock->state < AW_FD_CONNECTING)
		return NULL;
	aw_fdtab_hold(sock);
	return sock;
}

struct aw_sock *aw_first_io_sleep(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = look_up(fd);
	if (sock) {
		aw_fdtab_sleep(sock);
		aw_fdtab_release(sock);
	}
	aw_fdtab_unlock();
	return sock;
}

void aw_first_io_woken(struct aw_sock *sock)
{
	int saved = errno;

	aw_fdtab_lock();
	aw_fdtab_woken(sock);
	aw_fdtab_unlock();
	errno = saved;
}

static void let_go(struct aw_sock *sock)
{
	int saved = errno;

	aw_fdtab_lock();
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	errno = saved;
}

struct sleep {
	struct aw_sock *sock;
	bool decides;
};

/* With the lock. */
static struct sleep begin_sleep(struct aw_sock *sock, enum aw_first_io kind)
{
	struct sleep sleep = { sock, kind == AW_FIRST_WRITE || kind == AW_FIRST_CLOSE };

	aw_fdtab_sleep(sock);
	sock->deciders += sleep.decides;
	return sleep;
}

static void end_sleep(const struct sleep *sleep)
{
	int saved = errno;

	aw_fdtab_lock();
	sleep->sock->deciders -= sleep->decides;
	aw_fdtab_woken(sleep->sock);
	aw_fdtab_unlock();
	errno = saved;
}

static void give_in(void *sleep)
{
	end_sleep(sleep);
	let_go(((struct sleep *)sleep)->sock);
}

static int touch(const struct touched *t)
{
	int saved = errno, result;
	struct aw_sock *sock, like;
	struct sleep sleep;
	enum verdict verdict;

	aw_fdtab_lock();
	sock = look_up(t->fd);
	if (sock) {
		sleep = begin_sleep(sock, t->kind);
		like = *sock;
	}
	aw_fdtab_unlock();
	if (!sock)
		return 0;
	pthread_cleanup_push(give_in, &sleep); /* who reads may be cancelled */
	verdict = judge(&like, t);
	pthread_cleanup_pop(false);
	end_sleep(&sleep);
	result = carry_out(sock, t, verdict);
	if (result == 0)
		errno = saved;
	let_go(sock);
	return result;
}

int aw_first_io_slow(int fd, enum aw_first_io kind, bool dontwait)
{
	struct touched t = { .fd = fd, .kind = kind, .dontwait = dontwait };

	return touch(&t);
}

int aw_first_io_by(int fd, enum aw_first_io kind, const struct aw_deadline *by)
{
	struct touched t = { .fd = fd, .kind = kind, .dontwait = true, .by = by };

	return touch(&t);
}
