// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record as a bridge's line, over a TCP connection of this process: its looks at what no event tells.
#include "xsock/proxy/line_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "crypto/libcrypto.h"
#include "xsock/framed/cipher.h"

#define PATIENCE_MS 20000
#define MS INT64_C(1000000)
#define SELDOM_MS 64

struct scene {
	struct aw_line *line;
	struct aw_slot *slot;
	int tcp, peer;
};

static int64_t begun_ns; /* of the last look */
static bool is_kept; /* another process keeps the locks */
static int64_t tried_ns,
	until_ns; /* of the last try of a lock: when, and until when it would wait */

int __real_aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd,
			const struct timespec *by);
int __wrap_aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd,
			const struct timespec *by);

int __wrap_aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd,
			const struct timespec *by)
{
	tried_ns = aw_now_ns();
	until_ns = by->tv_sec * INT64_C(1000000000) + by->tv_nsec;
	return is_kept ? ETIMEDOUT : __real_aw_slot_lock(slot, lock, fd, NULL);
}

static void connect_both(struct scene *s)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	s->tcp = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(connect(s->tcp, (struct sockaddr *)&name, len), 0);
	s->peer = accept(listener, NULL, NULL);
	assert_true(s->peer >= 0);
	close(listener);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct aw_line_record_start start = { .near = -1, .far = -1, .share.fd = -1 };

	connect_both(s);
	s->slot = calloc(1, sizeof(*s->slot));
	pthread_mutex_init(&s->slot->rx_lock, NULL);
	pthread_mutex_init(&s->slot->tx_lock, NULL);
	aw_record_init(&s->slot->record);
	start.tcp = dup(s->tcp);
	start.share.slot = s->slot;
	s->line = aw_line_of_record(&start);
	assert_non_null(s->line);
	is_kept = false;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	s->line->ops->close(s->line, false);
	close(s->tcp);
	close(s->peer);
	free(s);
	return 0;
}

static int timer_of(const struct scene *s)
{
	struct aw_line_fd fds[AW_LINE_FDS];

	s->line->ops->fds(s->line, fds);
	return fds[1].fd;
}

static void await_timer(const struct scene *s)
{
	struct pollfd pollfd = { .fd = timer_of(s), .events = POLLIN };

	assert_true(pollfd.fd >= 0);
	assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
}

static bool look(const struct scene *s)
{
	begun_ns = aw_now_ns();
	return s->line->ops->unsent(s->line) != 0;
}

/* Looks again each time that the line's timer asks for it, until its pauses have grown. */
static void look_until_seldom(const struct scene *s)
{
	int64_t end_ns = aw_now_ns() + PATIENCE_MS * MS;
	struct itimerspec due;

	do {
		assert_true(aw_now_ns() < end_ns);
		await_timer(s);
		assert_true(look(s));
		assert_int_equal(timerfd_gettime(timer_of(s), &due), 0);
	} while (due.it_value.tv_nsec <= SELDOM_MS * MS);
}

static void timer__is_there_when_files_are_out(void **state)
{
	const struct scene *s = *state;
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	is_kept = true;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(look(s));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	await_timer(s);
}

/* The process that keeps it was stopped: the loop's other connections must not wait at each try. */
static void lock__that_is_kept_is_only_tried(void **state)
{
	const struct scene *s = *state;

	is_kept = true;
	assert_true(look(s));
	assert_true(until_ns >= begun_ns + MS);
	look_until_seldom(s);
	assert_true(until_ns <= tried_ns);
	is_kept = false;
	assert_false(look(s));
	is_kept = true;
	assert_true(look(s));
	assert_true(until_ns >= begun_ns + MS);
}

static void unsent__is_looked_at_seldom_while_the_peer_takes_nothing(void **state)
{
	const struct scene *s = *state;
	char bytes[65536] = { 0 };

	while (send(s->tcp, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_true(look(s));
	look_until_seldom(s);
}

static bool resets_on_close(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	return linger.l_onoff && !linger.l_linger;
}

static void death__resets_until_the_end_is_forwarded(void **state)
{
	const struct scene *s = *state;

	assert_true(resets_on_close(s->tcp));
	s->line->ops->shutdown(s->line, true);
	assert_true(resets_on_close(s->tcp));
	s->line->ops->shutdown(s->line, false);
	assert_false(resets_on_close(s->tcp));
}

/* Of bytes that are in the pair as well nothing is told but what lets the bridge put those behind them there, too. */
static void ready__tells_an_end_behind_what_is_undelivered(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };
	struct scene *s = *state;
	struct pollfd end = { .fd = s->tcp, .events = POLLRDHUP };

	s->slot->given = 2;
	assert_int_equal(send(s->peer, "xx", 2, 0), 2);
	assert_int_equal(s->line->ops->ready(s->line, 1), POLLOUT);
	assert_int_equal(setsockopt(s->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(s->peer);
	s->peer = -1;
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_true(s->line->ops->ready(s->line, 1) & POLLRDHUP);
	assert_false(s->line->ops->ready(s->line, 1) & POLLIN);
	assert_int_equal(s->slot->given, 2);
}

static ssize_t receive_peers(struct aw_record *peer, int fd, void *to, size_t len)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct iovec iov = { to, len };
	ssize_t n = -EAGAIN;

	while (n == -EAGAIN && poll(&pollfd, 1, PATIENCE_MS) > 0)
		n = aw_record_receive(peer, fd, &iov, 1, 0);
	return n;
}

/* The line goes on with the keys that are in the slot, and ends the stream for a program that has closed. */
static void tls__is_the_slots(void **state)
{
	const struct scene *s = *state;
	struct aw_record_secrets secrets = { .suite = AW_SUITE_AES_128_GCM_SHA256 };
	struct aw_record *peer = calloc(1, sizeof(*peer));
	char bytes[16] = "";
	struct iovec iov = { (void *)"to", 2 }, back = { (void *)"fro", 3 },
		     room = { bytes, sizeof(bytes) };

	if (!aw_libcrypto_load(NULL)) {
		free(peer);
		skip();
	}
	assert_int_equal(aw_record_secure(peer, s->peer, &secrets), 0);
	secrets.is_client = true;
	assert_int_equal(aw_record_secure(&s->slot->record, s->tcp, &secrets), 0);

	assert_int_equal(s->line->ops->send(s->line, &iov, 0), 2);
	assert_int_equal(receive_peers(peer, s->peer, bytes, sizeof(bytes)), 2);
	assert_memory_equal(bytes, "to", 2);
	assert_int_equal(aw_record_send(peer, s->peer, &back, 1, 0), 3);
	assert_int_equal(poll(&(struct pollfd){ .fd = s->tcp, .events = POLLIN }, 1, PATIENCE_MS),
			 1);
	assert_int_equal(s->line->ops->recv(s->line, &room, 0), 3);
	assert_memory_equal(bytes, "fro", 3);

	s->line->ops->shutdown(s->line, true);
	assert_int_equal(receive_peers(peer, s->peer, bytes, sizeof(bytes)), 0);
	assert_true(peer->rx.notified);
	free(peer);
}

int main(void)
{
#define LINE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		LINE_TEST(timer__is_there_when_files_are_out),
		LINE_TEST(lock__that_is_kept_is_only_tried),
		LINE_TEST(unsent__is_looked_at_seldom_while_the_peer_takes_nothing),
		LINE_TEST(ready__tells_an_end_behind_what_is_undelivered),
		LINE_TEST(death__resets_until_the_end_is_forwarded),
		LINE_TEST(tls__is_the_slots),
	};

	return cmocka_run_group_tests_name("line of a record", tests, NULL, NULL);
}
