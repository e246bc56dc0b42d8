// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table is kept, and yet each query tells of what happened before it. In a network namespace
// of its own, whose only interface is lo.
#define _GNU_SOURCE // unshare, setns
#include "fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ALIASES = 40,
	FLOOD = 2000, /* changes of a link: more news than a socket holds */
	THREADS = 4,
	RLIM_FDS = 64,
};

static int control; /* a socket for ioctl(2) in the namespace */

static void request(unsigned long what, struct ifreq *r)
{
	assert_int_equal(ioctl(control, what, r), 0);
}

/* lo:n gets 10.0.0.n; up or gone. */
static void alias_set(int n, bool up)
{
	struct ifreq r = { 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "lo:%d", n);
	addr.sin_addr.s_addr = htonl(0x0a000000u + (uint32_t)n);
	memcpy(&r.ifr_addr, &addr, sizeof(addr));
	if (up)
		request(SIOCSIFADDR, &r);
	else
		request(SIOCSIFFLAGS, &r); /* not IFF_UP: gone */
}

static void lo_mtu(int mtu)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_mtu = mtu };

	request(SIOCSIFMTU, &r);
}

static void lo_up(bool up)
{
	struct ifreq r = { .ifr_name = "lo" };

	r.ifr_flags = up ? IFF_UP : 0;
	request(SIOCSIFFLAGS, &r);
}

/* Is ::ffff:10.0.0.n in the table? The other queries say the same as the table. */
static bool has_alias(struct fixture *f, int n)
{
	const uint8_t want[16] = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)n };
	struct ibv_gid_entry entries[256];
	ssize_t count = ibv_query_gid_table(f->context, entries, 256, 0);
	struct ibv_port_attr port;
	union ibv_gid gid;
	bool found = false;

	assert_true(count >= 0);
	assert_int_equal(ibv_query_port(f->context, 1, &port), 0);
	for (ssize_t i = 0; i < count; i++) {
		assert_in_range(entries[i].gid_index, i, port.gid_tbl_len - 1);
		assert_int_equal(ibv_query_gid(f->context, 1, (int)entries[i].gid_index, &gid), 0);
		assert_memory_equal(&gid, &entries[i].gid, sizeof(gid));
		found |= !memcmp(gid.raw, want, sizeof(want));
	}
	return found;
}

static void query_gid__sees_each_address_at_once(void **state)
{
	struct fixture *f = *state;

	for (int n = 1; n <= ALIASES; n++) {
		assert_false(has_alias(f, n));
		alias_set(n, true);
		assert_true(has_alias(f, n));
	}
	/* With the first one go all that are of its network. */
	for (int n = ALIASES; n > 0; n--) {
		alias_set(n, false);
		assert_false(has_alias(f, n));
	}
}

static int index_of(struct fixture *f, int n)
{
	const uint8_t want[16] = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)n };
	union ibv_gid gid;

	for (int i = 0; ibv_query_gid(f->context, 1, i, &gid) == 0; i++)
		if (!memcmp(gid.raw, want, sizeof(want)))
			return i;
	return -1;
}

static void expect_unused(struct fixture *f, int index)
{
	const union ibv_gid none = { 0 };
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(f->context, 1, index, &gid), 0);
	assert_memory_equal(&gid, &none, sizeof(gid));
	assert_int_equal(ibv_query_gid_ex(f->context, 1, (uint32_t)index, &entry, 0), ENODATA);
}

/* As in the kernel's table: what goes leaves its place unused, and what comes takes the first such place. */
static void query_gid__an_address_keeps_its_index(void **state)
{
	struct fixture *f = *state;
	int at[5];

	for (int n = 1; n <= 3; n++) {
		alias_set(n, true);
		at[n] = index_of(f, n);
		assert_true(at[n] >= 0);
	}
	alias_set(2, false);
	assert_int_equal(index_of(f, 3), at[3]);
	expect_unused(f, at[2]);
	assert_false(has_alias(f, 2));
	alias_set(4, true);
	assert_int_equal(index_of(f, 4), at[2]);
	alias_set(2, true);
	at[2] = index_of(f, 2);
	assert_int_not_equal(at[2], -1);
	assert_int_equal(index_of(f, 1), at[1]);
	assert_int_equal(index_of(f, 3), at[3]);
	alias_set(1, false); /* and with it all that are of its network */
	assert_int_equal(index_of(f, 3), -1);
}

static void query_port__sees_the_link_at_once(void **state)
{
	struct fixture *f = *state;
	struct ibv_port_attr port;

	for (int i = 0; i < 10; i++) {
		lo_mtu(1500);
		assert_int_equal(ibv_query_port(f->context, 1, &port), 0);
		assert_int_equal(port.active_mtu, IBV_MTU_1024);
		lo_mtu(9000);
		assert_int_equal(ibv_query_port(f->context, 1, &port), 0);
		assert_int_equal(port.active_mtu, IBV_MTU_4096);
	}
	alias_set(1, true);
	assert_true(has_alias(f, 1));
	lo_up(false);
	assert_false(has_alias(f, 1));
	lo_up(true);
	assert_true(has_alias(f, 1));
	alias_set(1, false);
}

static void query_gid__after_more_news_than_fit(void **state)
{
	struct fixture *f = *state;

	assert_false(has_alias(f, 1));
	for (int i = 0; i < FLOOD; i++)
		lo_mtu(9000 + i % 2);
	alias_set(1, true);
	assert_true(has_alias(f, 1));
	alias_set(1, false);
	assert_false(has_alias(f, 1));
}

/* Neither takes the other's news. */
static void query_gid__in_both_after_a_fork(void **state)
{
	struct fixture *f = *state;
	int turn[2], ready[2], status;
	pid_t child;
	char octet;

	assert_false(has_alias(f, 1));
	assert_int_equal(pipe(turn), 0);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		has_alias(f, 1);
		_exit(write(ready[1], "r", 1) != 1 || read(turn[0], &octet, 1) != 1 ||
		      !has_alias(f, 1));
	}
	/* The child compares one query with the next: no address comes between them. */
	close(ready[1]);
	assert_int_equal(read(ready[0], &octet, 1), 1);
	alias_set(1, true);
	assert_int_equal(write(turn[1], "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(has_alias(f, 1));
	alias_set(1, false);
	close(turn[0]);
	close(turn[1]);
	close(ready[0]);
}

/* How many fds of this process are netlink sockets; *last is one of them. */
static int netlinks(int *last)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		int fd = atoi(e->d_name), domain;
		socklen_t len = sizeof(domain);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_NETLINK)
			continue;
		assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		*last = fd;
		count++;
	}
	closedir(dir);
	return count;
}

static void close_device__leaves_no_fd(void **state)
{
	struct ibv_context *context, *other;
	union ibv_gid gid;
	int fd;

	(void)state;
	context = device_open();
	assert_int_equal(netlinks(&fd), 0);
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_int_equal(netlinks(&fd), 1);
	other = device_open();
	assert_int_equal(ibv_query_gid(other, 1, 0, &gid), 0);
	assert_int_equal(netlinks(&fd), 1);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_query_gid(other, 1, 0, &gid), 0);
	assert_int_equal(ibv_close_device(other), 0);
	assert_int_equal(netlinks(&fd), 0);
}

/* A daemon closes what it knows nothing of, and its own files get the numbers. */
static void query_gid__after_the_program_closed_the_fd(void **state)
{
	struct fixture *f = *state;
	int fd, pair[2], fds[2];
	char octets[4];

	/* One for the table, one for the events of the port, since the fixture's async_fd does not block. */
	assert_false(has_alias(f, 1));
	assert_int_equal(netlinks(&fd), 2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; netlinks(&fds[i % 2]) > 0; i++)
		assert_int_equal(dup2(pair[0], fds[i]), fds[i]);
	assert_int_equal(write(pair[1], "mine", 4), 4);
	alias_set(1, true);
	assert_true(has_alias(f, 1));
	alias_set(1, false);
	assert_false(has_alias(f, 1));
	assert_int_equal(netlinks(&fd), 2);
	assert_int_equal(recv(pair[0], octets, sizeof(octets), MSG_DONTWAIT), 4);
	assert_memory_equal(octets, "mine", 4);
	close(fds[0]);
	close(fds[1]);
	close(pair[0]);
	close(pair[1]);
}

/* One fd is enough for the addresses themselves, and goes to them. */
static void query_gid__with_one_fd_left(void **state)
{
	static int held[RLIM_FDS];
	struct rlimit before, few = { RLIM_FDS, RLIM_FDS };
	struct ibv_context *context = device_open();
	struct fixture f = { .context = context };
	int count = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (count < RLIM_FDS && (held[count] = dup(control)) >= 0)
		count++;
	close(held[--count]);
	for (int i = 0; i < 3; i++) {
		assert_false(has_alias(&f, 1));
		alias_set(1, true);
		assert_true(has_alias(&f, 1));
		alias_set(1, false);
	}
	while (count)
		close(held[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Where the first thread looks at its own namespace between the second's open and look. */
static pthread_barrier_t opened, looked;

static void *elsewhere(void *arg)
{
	struct ibv_context *context;
	struct ibv_gid_entry entry;
	int err;

	has_alias(arg, 1);
	err = unshare(CLONE_NEWNET);
	context = err ? NULL : device_open();
	pthread_barrier_wait(&opened);
	pthread_barrier_wait(&looked);
	if (err)
		return "unshare";
	if (ibv_query_gid_table(context, &entry, 1, 0) != 0)
		return "addresses of the namespace that was left";
	ibv_close_device(context);
	return NULL;
}

static void open_device__in_another_namespace(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	void *wrong;

	alias_set(1, true);
	assert_true(has_alias(f, 1));
	pthread_barrier_init(&opened, NULL, 2);
	pthread_barrier_init(&looked, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, elsewhere, f), 0);
	pthread_barrier_wait(&opened);
	assert_true(has_alias(f, 1));
	pthread_barrier_wait(&looked);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
	assert_true(has_alias(f, 1));
	alias_set(1, false);
	assert_false(has_alias(f, 1));
}

static void *ask(void *arg)
{
	struct fixture *f = arg;
	struct ibv_port_attr port;
	union ibv_gid gid;

	for (int i = 0; i < 500; i++)
		if (ibv_query_gid(f->context, 1, 0, &gid) || ibv_query_port(f->context, 1, &port))
			return "failed";
	return NULL;
}

static void query_gid__by_many_threads_under_changes(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, f), 0);
	for (int n = 1; n <= ALIASES; n++) {
		alias_set(n, true);
		assert_true(has_alias(f, n));
		alias_set(n, false);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(query_gid__sees_each_address_at_once),
		WITH(query_gid__an_address_keeps_its_index),
		WITH(query_port__sees_the_link_at_once),
		WITH(query_gid__after_more_news_than_fit),
		WITH(query_gid__in_both_after_a_fork),
		cmocka_unit_test(close_device__leaves_no_fd),
		WITH(query_gid__after_the_program_closed_the_fd),
		cmocka_unit_test(query_gid__with_one_fd_left),
		WITH(open_device__in_another_namespace),
		WITH(query_gid__by_many_threads_under_changes),
	};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("no network namespace of our own: skipped\n");
		return 77;
	}
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	lo_up(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
