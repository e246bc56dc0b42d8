// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory in common: which is taken, which is refused, and that every refusal leaves nothing behind.
#define _GNU_SOURCE
#include "../lib/proc.h"
#include "net/mem/memfd.h"
#include "net/qp/host_ring.h"

#include "wire/octets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/limit.h"

static const uint8_t zeros[AW_HOST_VERDICT_LEN];

/* A responder's memory, whose hello a test may change. */
struct scene {
	struct aw_host_ring *ring;
	uint8_t hello[AW_HOST_HELLO_LEN];
	int fds;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	const char *cause;

	s->fds = proc_fds();
	s->ring = aw_host_ring_make(s->hello, &cause);
	*state = s;
	return s->ring == NULL;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	int left;

	aw_host_ring_free(s->ring);
	left = proc_fds() - s->fds;
	free(s);
	return left;
}

static void assert_refused(const uint8_t *hello)
{
	uint8_t verdict[AW_HOST_VERDICT_LEN];
	const char *cause = NULL;

	memset(verdict, 1, sizeof(verdict));
	assert_null(aw_host_ring_open(hello, verdict, &cause));
	assert_non_null(cause);
	assert_memory_equal(verdict, zeros, sizeof(verdict));
}

/* The initiator's end, once both have agreed. */
static struct aw_host_ring *join_peer(struct scene *s)
{
	uint8_t verdict[AW_HOST_VERDICT_LEN];
	const char *cause;
	struct aw_host_ring *peer = aw_host_ring_open(s->hello, verdict, &cause);

	assert_non_null(peer);
	assert_int_equal(aw_host_ring_decide(s->ring, verdict), AW_HOST_RING);
	return peer;
}

static void host_ring__both_ends(void **state)
{
	struct scene *s = *state;
	struct aw_host_ring *peer = join_peer(s);

	assert_int_equal(proc_fds() - s->fds, 0);
	memset(aw_duplex_tx(&s->ring->duplex), 5, AW_HOST_RING_BYTES);
	aw_duplex_produce(&s->ring->duplex, AW_HOST_RING_BYTES);
	assert_int_equal(aw_duplex_ready(&peer->duplex), AW_HOST_RING_BYTES);
	assert_int_equal(aw_duplex_rx(&peer->duplex)[AW_HOST_RING_BYTES - 1], 5);
	/* The next byte lies where the first one does, and behind the last one. */
	aw_duplex_rx(&peer->duplex);
	assert_int_equal(aw_duplex_rx(&peer->duplex)[AW_HOST_RING_BYTES], 5);
	/* The other direction is other memory. */
	assert_int_equal(aw_duplex_tx(&peer->duplex)[0], 0);
	aw_host_ring_free(peer);
}

/* Made after so many bells, opened as the responder listens, and each end rings the other's once that one listens. */
static void host_ring__pipes_come_late(void **state)
{
	struct scene *s = *state;
	struct aw_host_ring *peer = join_peer(s);

	for (int i = 1; i < AW_HOST_BELLS_BY_TCP; i++)
		assert_false(aw_host_ring_count_bell(s->ring));
	assert_int_equal(proc_fds() - s->fds, 0);
	assert_true(aw_host_ring_count_bell(s->ring));
	assert_false(aw_host_ring_count_bell(peer));
	assert_false(aw_host_ring_ring(s->ring));
	aw_host_ring_tell_bells(s->ring);
	assert_true(aw_host_ring_count_bell(peer));
	assert_true(aw_host_ring_ring(peer));
	assert_false(aw_host_ring_ring(s->ring));
	aw_host_ring_tell_bells(peer);
	assert_true(aw_host_ring_ring(s->ring));
	assert_true(aw_bells_drain(&s->ring->bells) && aw_bells_drain(&peer->bells));
	assert_false(aw_host_ring_count_bell(s->ring) || aw_host_ring_count_bell(peer));
	aw_host_ring_free(peer);
}

/* It names a file that is no pipe. */
static void host_ring__pipes_that_are_none(void **state)
{
	struct scene *s = *state;
	struct aw_host_ring *peer = join_peer(s);

	for (int i = 1; i <= AW_HOST_BELLS_BY_TCP; i++)
		assert_int_equal(aw_host_ring_count_bell(s->ring), i == AW_HOST_BELLS_BY_TCP);
	aw_host_ring_tell_bells(s->ring);
	aw_bells_close(&s->ring->bells);
	assert_false(aw_host_ring_count_bell(peer));
	assert_false(aw_host_ring_ring(peer));
	aw_host_ring_tell_bells(peer);
	assert_false(aw_host_ring_count_bell(peer));
	aw_host_ring_free(peer);
}

static void host_ring_decide__tcp_or_a_lie(void **state)
{
	struct scene *s = *state;
	uint8_t lie[AW_HOST_VERDICT_LEN] = { 1 };

	assert_int_equal(aw_host_ring_decide(s->ring, lie), AW_HOST_LIE);
	assert_int_equal(aw_host_ring_decide(s->ring, zeros), AW_HOST_TCP);
}

static void host_ring_open__no_such_process_or_fd(void **state)
{
	struct scene *s = *state;
	uint8_t hello[AW_HOST_HELLO_LEN];

	memcpy(hello, s->hello, sizeof(hello));
	put_be32(hello, UINT32_MAX);
	assert_refused(hello);
	put_be32(hello, 0);
	assert_refused(hello);
	put_be32(hello, (uint32_t)getpid());
	put_be32(hello + 4, 123456);
	assert_refused(hello);
	/* What is no such memory is not opened: a pipe's end would be, in vain. */
	put_be32(hello + 4, 0);
	assert_refused(hello);
}

static void host_ring_open__another_secret(void **state)
{
	struct scene *s = *state;

	s->hello[AW_HOST_HELLO_LEN - 1] ^= 1;
	assert_refused(s->hello);
}

static void host_ring_open__another_layout(void **state)
{
	struct scene *s = *state;
	uint32_t *layout = s->ring->base;

	*layout += 1;
	assert_refused(s->hello);
	*layout -= 1;
	layout[1] *= 2;
	assert_refused(s->hello);
}

/* Of the same name, with these seals, and longer by so much. */
static void assert_refused_file(struct scene *s, int seals, off_t longer)
{
	int fd = memfd_create("anywarp-host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t size = lseek((int)get_be32(s->hello + 4), 0, SEEK_END);
	uint8_t hello[AW_HOST_HELLO_LEN];

	assert_true(size > 0);
	assert_int_equal(ftruncate(fd, size + longer), 0);
	assert_int_equal(pwrite(fd, s->ring->base, 4096, 0), 4096);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	memcpy(hello, s->hello, sizeof(hello));
	put_be32(hello + 4, (uint32_t)fd);
	assert_refused(hello);
	close(fd);
}

/* A peer could cut what is not sealed under our hands. */
static void host_ring_open__not_sealed_or_of_another_size(void **state)
{
	struct scene *s = *state;

	assert_refused_file(s, F_SEAL_GROW, 0);
	assert_refused_file(s, F_SEAL_SHRINK, 0);
	assert_refused_file(s, F_SEAL_SHRINK | F_SEAL_GROW, 4096);
	assert_refused_file(s, F_SEAL_SHRINK | F_SEAL_GROW, -4096);
}

/* Of the same content, and with a lease: an open for writing would wait for its end (/proc/sys/fs/lease-break-time). */
static void host_ring_open__a_memfd_with_a_lease(void **state)
{
	struct scene *s = *state;
	int first = memfd_create("anywarp-host", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd;
	off_t size = lseek((int)get_be32(s->hello + 4), 0, SEEK_END);
	char path[64];

	assert_int_equal(ftruncate(first, size), 0);
	assert_int_equal(pwrite(first, s->ring->base, 4096, 0), 4096);
	assert_int_equal(fcntl(first, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", first);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(first);
	signal(SIGIO, SIG_IGN); /* the holder of a lease is told so of the open */
	assert_int_equal(fcntl(fd, F_SETLEASE, F_RDLCK), 0);
	put_be32(s->hello + 4, (uint32_t)fd);
	alarm(limit_s(10));
	assert_refused(s->hello);
	alarm(0);
	close(fd);
	signal(SIGIO, SIG_DFL);
}

/* Nor one that is open no more. */
static void memfd_is_one__no_other_file(void **state)
{
	FILE *file = tmpfile();
	int fd = memfd_create("anything", MFD_CLOEXEC);
	int pipes[2];

	(void)state;
	assert_non_null(file);
	assert_int_equal(pipe(pipes), 0);
	assert_true(aw_memfd_is_one(fd));
	assert_false(aw_memfd_is_one(fileno(file)));
	assert_false(aw_memfd_is_one(pipes[0]));
	assert_false(aw_memfd_is_one(-1));
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
	fclose(file);
}

/* ftruncate(2) beyond the limit would end the process by SIGXFSZ. */
static void host_ring_make__small_files_only(void **state)
{
	struct rlimit before, small;
	uint8_t hello[AW_HOST_HELLO_LEN];
	const char *cause = NULL;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_null(aw_host_ring_make(hello, &cause));
	assert_non_null(cause);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void host_ring_make__as_many_as_there_are_places(void **state)
{
	struct aw_host_ring **rings = calloc(AW_HOST_RINGS_MAX, sizeof(struct aw_host_ring *));
	uint8_t hello[AW_HOST_HELLO_LEN];
	const char *cause = NULL;
	uint32_t made = 1; /* the scene's */

	(void)state;
	for (; made < AW_HOST_RINGS_MAX; made++) {
		rings[made] = aw_host_ring_make(hello, &cause);
		assert_non_null(rings[made]);
		aw_host_ring_decide(rings[made], zeros);
	}
	assert_null(aw_host_ring_make(hello, &cause));
	assert_refused(((struct scene *)*state)->hello);
	aw_host_ring_free(rings[--made]);
	rings[made] = aw_host_ring_make(hello, &cause);
	assert_non_null(rings[made]);
	for (uint32_t i = 1; i < AW_HOST_RINGS_MAX; i++)
		aw_host_ring_free(rings[i]);
	free(rings);
}

/* Of offers without a verdict so many have their memfds; a peer that has opened the memory of another one keeps it. */
static void host_ring_make__offers_without_a_verdict(void **state)
{
	struct scene *s = *state;
	int places = (int)aw_memfds_places();
	struct aw_host_ring **rings = calloc((size_t)places * 2, sizeof(struct aw_host_ring *));
	uint8_t hello[AW_HOST_HELLO_LEN], verdict[AW_HOST_VERDICT_LEN];
	const char *cause;
	struct aw_host_ring *peer = aw_host_ring_open(s->hello, verdict, &cause);

	assert_non_null(peer);
	for (int i = 0; i < places * 2; i++) {
		rings[i] = aw_host_ring_make(hello, &cause);
		assert_non_null(rings[i]);
		assert_int_equal(proc_fds() - s->fds, i + 2 < places ? i + 2 : places);
	}
	assert_refused(s->hello);
	assert_int_equal(aw_host_ring_decide(s->ring, verdict), AW_HOST_RING);
	for (int i = 0; i < places * 2; i++)
		aw_host_ring_free(rings[i]);
	assert_int_equal(proc_fds() - s->fds, 0);
	aw_host_ring_free(peer);
	free(rings);
}

/* A sixteenth of the fds that the process may have. */
static void host_ring_make__fewer_offers_where_fds_are_few(void **state)
{
	struct scene *s = *state;
	struct aw_host_ring *rings[10];
	uint8_t hello[AW_HOST_HELLO_LEN];
	struct rlimit before, few;
	const char *cause;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 64, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(aw_memfds_places(), 64 / 16);
	for (int i = 0; i < 10; i++) {
		rings[i] = aw_host_ring_make(hello, &cause);
		assert_non_null(rings[i]);
	}
	assert_int_equal(proc_fds() - s->fds, 4);
	for (int i = 0; i < 10; i++)
		aw_host_ring_free(rings[i]);
	few.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(aw_memfds_places(), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(aw_memfds_places() <= AW_MEMFDS_MAX);
}

static bool is_one(const char *local, const char *peer)
{
	struct sockaddr_storage addr[2] = { 0 };
	const char *text[2] = { local, peer };

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in *in = (struct sockaddr_in *)&addr[i];
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr[i];

		addr[i].ss_family = strchr(text[i], ':') ? AF_INET6 : AF_INET;
		assert_int_equal(inet_pton(addr[i].ss_family, text[i],
					   strchr(text[i], ':') ? (void *)&in6->sin6_addr
								: (void *)&in->sin_addr),
				 1);
	}
	return aw_host_is_one((struct sockaddr *)&addr[0], (struct sockaddr *)&addr[1]);
}

static void host_is_one__addresses(void **state)
{
	(void)state;
	assert_true(is_one("127.0.0.1", "127.0.0.2"));
	assert_true(is_one("0.0.0.0", "127.0.0.1"));
	assert_true(is_one("192.0.2.1", "192.0.2.1"));
	assert_true(is_one("::1", "::1"));
	assert_true(is_one("2001:db8::1", "2001:db8::1"));
	assert_false(is_one("192.0.2.1", "192.0.2.2"));
	assert_false(is_one("0.0.0.0", "0.0.0.0"));
	assert_false(is_one("2001:db8::1", "2001:db8::2"));
	assert_false(is_one("192.0.2.1", "2001:db8::1"));
}

static bool is_offered(int fd)
{
	char path[32], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, "memfd:anywarp-host");
}

static void host_ring__offer_and_memory_stay_with_the_parent(void **state)
{
	struct scene *s = *state;
	int fd = (int)get_be32(s->hello + 4), status;
	struct aw_host_ring *peer;

	aw_duplex_tx(&s->ring->duplex)[0] = 5;
	aw_host_ring_fork_prepare();
	pid_t child = fork();

	if (child == 0) {
		aw_host_ring_fork_child();
		bool gave_up = !is_offered(fd) && aw_duplex_tx(&s->ring->duplex)[0] == 0;

		aw_duplex_tx(&s->ring->duplex)[0] = 6;
		aw_host_ring_free(s->ring);
		_exit(!gave_up);
	}
	aw_host_ring_fork_parent();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(is_offered(fd));
	peer = join_peer(s);
	assert_int_equal(aw_duplex_rx(&peer->duplex)[0], 5);
	aw_host_ring_free(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(host_ring__both_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring__pipes_come_late, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring__pipes_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_decide__tcp_or_a_lie, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_open__no_such_process_or_fd, setup,
						teardown),
		cmocka_unit_test_setup_teardown(host_ring_open__another_secret, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_open__another_layout, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_open__not_sealed_or_of_another_size,
						setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_make__small_files_only, setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_make__as_many_as_there_are_places, setup,
						teardown),
		cmocka_unit_test_setup_teardown(host_ring_make__offers_without_a_verdict, setup,
						teardown),
		cmocka_unit_test_setup_teardown(host_ring_make__fewer_offers_where_fds_are_few,
						setup, teardown),
		cmocka_unit_test_setup_teardown(host_ring_open__a_memfd_with_a_lease, setup,
						teardown),
		cmocka_unit_test_setup_teardown(host_ring__offer_and_memory_stay_with_the_parent,
						setup, teardown),
		cmocka_unit_test(memfd_is_one__no_other_file),
		cmocka_unit_test(host_is_one__addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
