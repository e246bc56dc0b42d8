// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an endpoint carries, who waits for it, and how.
#define _GNU_SOURCE /* POLLRDHUP */
#include "ends.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static _Atomic bool is_full; /* TCP takes nothing */

/* Before the C library's, for the libraries as well. */
EXPORTED ssize_t send(int fd, const void *octets, size_t len, int flags)
{
	if (!is_full)
		return syscall(SYS_sendto, fd, octets, len, flags, NULL, 0);
	errno = EAGAIN;
	return -1;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (!is_full)
		return syscall(SYS_sendmsg, fd, msg, flags);
	errno = EAGAIN;
	return -1;
}

static void nothing(void *arg, int err)
{
	*(int *)arg = err + 1;
}

static void ep_send__as_much_as_fits(void **state)
{
	static uint8_t octets[1 << 20];
	struct iovec iov = { octets, sizeof(octets) };
	struct ends ends;
	size_t taken = 0;
	ssize_t n;

	(void)state;
	ends_open(&ends, NULL);
	while ((n = aw_xs_ep_send(ends.client, &iov, 1, 0)) > 0)
		taken += (size_t)n;
	assert_int_equal(n, -EAGAIN);
	assert_true(taken >= 1 << 19);
	assert_true(taken <= 3 << 19);
	assert_true(aw_xs_ep_unsent(ends.client) > 0);
	assert_int_equal(aw_xs_ep_ready(ends.client) & POLLOUT, 0);
	assert_int_equal(aw_xs_ep_drain(ends.client, 1), -ETIMEDOUT);
	while (taken > 0) {
		ends_wait(ends.server, POLLIN);
		taken -= (size_t)aw_xs_ep_recv(ends.server, &iov, 1, 0);
	}
	ends_wait(ends.client, POLLOUT);
	assert_int_equal(aw_xs_ep_drain(ends.client, LONG), 0);
	assert_int_equal(aw_xs_ep_unsent(ends.client), 0);
	ends_close(&ends);
}

/* The sender makes no further call. */
static void ep_send__goes_on_by_itself(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, &(struct aw_xs_options){ .sndbuf = 1 << 20, .rcvbuf = 8192 });
	ends_send(ends.client, 0, 1000000);
	ends_recv(ends.server, 0, 1000000);
	ends_close(&ends);
}

static void ep_send__no_octets(void **state)
{
	struct iovec iov[2] = { { "", 0 }, { "", 0 } };
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	assert_int_equal(aw_xs_ep_send(ends.client, iov, 2, 0), 0);
	assert_int_equal(aw_xs_ep_recv(ends.client, iov, 2, 0), 0);
	ends_close(&ends);
}

static void ep_recv__peeks(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	ends_send_text(ends.client, "abc", MSG_MORE);
	ends_recv_text(ends.server, "abc", MSG_PEEK);
	assert_int_equal(aw_xs_ep_pending(ends.server), 3);
	ends_recv_text(ends.server, "abc", 0);
	assert_int_equal(aw_xs_ep_pending(ends.server), 0);
	ends_close(&ends);
}

static void ep_recv__urgent(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	assert_int_equal(aw_xs_ep_ready(ends.server) & POLLPRI, 0);
	ends_send_text(ends.client, "ab", 0);
	ends_send_text(ends.client, "c!", MSG_OOB);
	ends_send_text(ends.client, "de", 0);
	ends_recv_text(ends.server, "!", MSG_OOB);
	assert_int_equal(aw_xs_ep_ready(ends.server) & POLLPRI, 0);
	ends_recv_text(ends.server, "abc", 0);
	assert_true(aw_xs_ep_at_mark(ends.server));
	ends_recv_text(ends.server, "de", 0);
	aw_xs_ep_set_oobinline(ends.server, true);
	ends_send_text(ends.client, "f!g", MSG_OOB);
	ends_wait(ends.server, POLLPRI);
	ends_wait(ends.server, POLLIN);
	ends_recv_text(ends.server, "f!", 0);
	ends_recv_text(ends.server, "g", 0);
	ends_close(&ends);
}

/* Announced though no octet can follow yet. */
static void ep_recv__urgent_behind_a_full_window(void **state)
{
	static uint8_t octets[4096];
	struct iovec iov = { octets, sizeof(octets) };
	struct ends ends;

	(void)state;
	ends_open(&ends, &(struct aw_xs_options){ .sndbuf = 65536, .rcvbuf = 8192 });
	for (int i = 0; i < 4; i++)
		assert_int_equal(aw_xs_ep_send(ends.client, &iov, 1, 0), sizeof(octets));
	ends_send_text(ends.client, "!", MSG_OOB);
	ends_wait(ends.server, POLLPRI);
	assert_int_equal(aw_xs_ep_recv(ends.server, &iov, 1, MSG_OOB), -EAGAIN);
	for (size_t got = 0; got < 4 * sizeof(octets);) {
		ends_wait(ends.server, POLLIN);
		got += (size_t)aw_xs_ep_recv(ends.server, &iov, 1, 0);
	}
	ends_recv_text(ends.server, "!", MSG_OOB);
	ends_close(&ends);
}

static void ep_wait__no_longer_than_asked(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	assert_int_equal(aw_xs_ep_wait(ends.client, POLLIN, 0), 0);
	assert_int_equal(aw_xs_ep_wait(ends.client, POLLIN, 1000000), 0);
	ends_close(&ends);
}

struct job {
	struct aw_xs_ep *ep;
	size_t len;
	short events;
};

static void *shut_down(void *arg)
{
	aw_xs_ep_shutdown(arg, SHUT_RDWR);
	return NULL;
}

static void *wait_readable(void *arg)
{
	assert_true(aw_xs_ep_wait(arg, POLLIN, -1) & POLLIN);
	return NULL;
}

static void ep_wait__shut_down_by_another_thread(void **state)
{
	pthread_t waiters[3], thread;
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&waiters[i], NULL, wait_readable, ends.client), 0);
	assert_int_equal(pthread_create(&thread, NULL, shut_down, ends.client), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(waiters[i], NULL);
	pthread_join(thread, NULL);
	ends_expect(ends.client, 0);
	ends_close(&ends);
}

static void *send_all(void *arg)
{
	struct job *job = arg;

	ends_send(job->ep, 0, job->len);
	return NULL;
}

static void *recv_all(void *arg)
{
	struct job *job = arg;

	ends_recv(job->ep, 0, job->len);
	return NULL;
}

static void run_both_ways(const struct aw_xs_options *options, size_t len)
{
	pthread_t threads[4];
	struct ends ends;

	ends_open(&ends, options);
	struct job client = { ends.client, len, 0 }, server = { ends.server, len, 0 };

	assert_int_equal(pthread_create(&threads[0], NULL, send_all, &client), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, send_all, &server), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, recv_all, &client), 0);
	assert_int_equal(pthread_create(&threads[3], NULL, recv_all, &server), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ends_close(&ends);
}

static void ep_wait__four_threads_both_ways(void **state)
{
	(void)state;
	run_both_ways(NULL, 3000000);
	run_both_ways(
		&(struct aw_xs_options){
			.sndbuf = 4096, .rcvbuf = 4096, .sq_size = 16, .rq_size = 16 },
		300000);
}

/* The way of event loops: one thread, both ends. */
static void poll_both(struct aw_xs_ep *a, struct aw_xs_ep *b)
{
	struct pollfd fds[2 * AW_XS_EP_FDS];
	bool quiet = aw_xs_ep_arm(a);

	quiet = aw_xs_ep_arm(b) && quiet;
	aw_xs_ep_fds(a, fds);
	aw_xs_ep_fds(b, fds + AW_XS_EP_FDS);
	if (quiet)
		assert_true(poll(fds, 2 * AW_XS_EP_FDS, 20000) > 0);
}

static void ep_arm__event_loop(void **state)
{
	uint8_t out[3000], in[5000];
	size_t sent = 0, got = 0, total = 1000000;
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	while (got < total) {
		struct iovec o = { out, sizeof(out) }, i = { in, sizeof(in) };
		ssize_t n = -EAGAIN;

		for (size_t k = 0; k < sizeof(out); k++)
			out[k] = ends_octet(sent + k);
		if (total - sent < o.iov_len)
			o.iov_len = total - sent;
		if (sent < total && aw_xs_ep_ready(ends.client) & POLLOUT)
			n = aw_xs_ep_send(ends.client, &o, 1, 0);
		sent += n > 0 ? (size_t)n : 0;
		n = -EAGAIN;
		if (sent == total || sent % 7 == 0 || !(aw_xs_ep_ready(ends.client) & POLLOUT))
			n = aw_xs_ep_recv(ends.server, &i, 1, 0);
		for (ssize_t k = 0; k < n; k++)
			assert_int_equal(in[k], ends_octet(got + (size_t)k));
		got += n > 0 ? (size_t)n : 0;
		if (n == -EAGAIN && (sent == total || !(aw_xs_ep_ready(ends.client) & POLLOUT)) &&
		    !(aw_xs_ep_ready(ends.server) & POLLIN))
			poll_both(ends.client, ends.server);
	}
	ends_close(&ends);
}

/* The loop waits until TCP has taken what the QP has: nothing else happens to the endpoint. */
static void ep_arm__until_nothing_is_unsent(void **state)
{
	struct pollfd fds[AW_XS_EP_FDS];
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	is_full = true;
	ends_send_text(ends.client, "abc", 0);
	assert_int_equal(aw_xs_ep_unsent(ends.client), 3);
	while (aw_xs_ep_unsent(ends.client) > 0) {
		aw_xs_ep_ready(ends.client);
		if (!aw_xs_ep_arm(ends.client))
			continue;
		aw_xs_ep_fds(ends.client, fds);
		is_full = false;
		assert_true(poll(fds, AW_XS_EP_FDS, 20000) > 0);
	}
	ends_recv_text(ends.server, "abc", 0);
	ends_close(&ends);
}

/* Once its end was told, nothing is left to come. */
static void ep_arm__of_one_that_is_over(void **state)
{
	struct pollfd fds[AW_XS_EP_FDS];
	struct ends ends;
	bool asleep = false;

	(void)state;
	ends_open(&ends, NULL);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	ends_wait(ends.server, POLLHUP);
	assert_int_equal(aw_xs_ep_drain_all(LONG), 0);
	for (int i = 0; i < 1000 && !asleep; i++) {
		aw_xs_ep_ready(ends.server);
		if (!aw_xs_ep_arm(ends.server))
			continue;
		aw_xs_ep_fds(ends.server, fds);
		asleep = poll(fds, AW_XS_EP_FDS, 20) == 0;
	}
	assert_true(asleep);
	ends_close(&ends);
}

/* One thread sleeps in wait, one in poll(2): both hear. */
static void ep_arm__beside_a_waiter(void **state)
{
	struct pollfd fds[AW_XS_EP_FDS];
	pthread_t waiter;
	struct ends ends;

	(void)state;
	for (int i = 0; i < 20; i++) {
		ends_open(&ends, NULL);
		assert_int_equal(pthread_create(&waiter, NULL, wait_readable, ends.server), 0);
		ends_send_text(ends.client, "x", 0);
		while (!(aw_xs_ep_ready(ends.server) & POLLIN)) {
			if (!aw_xs_ep_arm(ends.server))
				continue;
			aw_xs_ep_fds(ends.server, fds);
			assert_true(poll(fds, AW_XS_EP_FDS, 20000) > 0);
		}
		pthread_join(waiter, NULL);
		ends_close(&ends);
	}
}

static void ep_iowrite__where_the_peer_maps(void **state)
{
	static uint8_t mapped[10000], octets[12000];
	struct ends ends;

	(void)state;
	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = ends_octet(i);
	ends_open(&ends, &(struct aw_xs_options){ .iomap_size = 2 });
	assert_int_equal(aw_xs_ep_iowrite(ends.client, octets, 1, 500), 0);
	assert_int_equal(aw_xs_ep_iomap(ends.server, mapped, sizeof(mapped), PROT_WRITE | PROT_READ,
					500),
			 -EINVAL);
	assert_int_equal(aw_xs_ep_iomap(ends.server, mapped, sizeof(mapped), PROT_WRITE, 500), 500);
	ends_send_text(ends.server, "mapped", 0);
	ends_recv_text(ends.client, "mapped", 0);
	assert_int_equal(aw_xs_ep_iowrite(ends.client, octets, sizeof(octets), 500),
			 sizeof(mapped));
	ends_send_text(ends.client, "written", 0);
	ends_recv_text(ends.server, "written", 0);
	assert_memory_equal(mapped, octets, sizeof(mapped));
	assert_int_equal(aw_xs_ep_iounmap(ends.server, mapped, 1), -EINVAL);
	assert_int_equal(aw_xs_ep_iounmap(ends.server, mapped, sizeof(mapped)), 0);
	assert_int_equal(aw_xs_ep_iomap(ends.server, mapped, 10, PROT_WRITE, 0), 0);
	assert_int_equal(aw_xs_ep_iomap(ends.server, mapped, 10, PROT_WRITE, -1), (intptr_t)mapped);
	assert_int_equal(aw_xs_ep_iomap(ends.server, mapped, 10, PROT_WRITE, 0), -ENOMEM);
	ends_close(&ends);
}

static void ep_send_zero__in_order(void **state)
{
	static uint8_t octets[40000];
	struct ends ends;
	int told = 0;

	(void)state;
	ends_open(&ends, NULL);
	struct ibv_mr *mr = ibv_reg_mr(aw_xs_ep_pd(ends.client), octets, sizeof(octets), 0);

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = ends_octet(100 + i);
	ends_send(ends.client, 0, 100);
	assert_int_equal(aw_xs_ep_send_zero(ends.client, octets, sizeof(octets), mr->lkey, nothing,
					    &told),
			 sizeof(octets));
	ends_send(ends.client, 100 + sizeof(octets), 100);
	ends_recv(ends.server, 0, 200 + sizeof(octets));
	while (!told)
		ends_wait(ends.client, POLLOUT);
	assert_int_equal(told, 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ends_close(&ends);
}

static void ep_post__told_once_whatever_happens(void **state)
{
	static uint8_t octets[100];
	struct ends ends;
	int told = 0;

	(void)state;
	ends_open(&ends, NULL);
	struct ibv_mr *mr = ibv_reg_mr(aw_xs_ep_pd(ends.client), octets, sizeof(octets),
				       IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)octets, sizeof(octets), mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ };

	/* The peer has no such region: it ends the connection. */
	assert_int_equal(aw_xs_ep_post(ends.client, &wr, NULL, nothing, &told), 0);
	ends_wait(ends.server, POLLERR);
	ends_wait(ends.client, POLLERR);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	assert_int_equal(aw_xs_ep_drain_all(LONG), 0);
	assert_true(told > 1);
	ibv_dereg_mr(mr);
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_send__as_much_as_fits),
		cmocka_unit_test(ep_send__goes_on_by_itself),
		cmocka_unit_test(ep_send__no_octets),
		cmocka_unit_test(ep_recv__peeks),
		cmocka_unit_test(ep_recv__urgent),
		cmocka_unit_test(ep_recv__urgent_behind_a_full_window),
		cmocka_unit_test(ep_wait__no_longer_than_asked),
		cmocka_unit_test(ep_wait__shut_down_by_another_thread),
		cmocka_unit_test(ep_wait__four_threads_both_ways),
		cmocka_unit_test(ep_arm__event_loop),
		cmocka_unit_test(ep_arm__until_nothing_is_unsent),
		cmocka_unit_test(ep_arm__of_one_that_is_over),
		cmocka_unit_test(ep_arm__beside_a_waiter),
		cmocka_unit_test(ep_iowrite__where_the_peer_maps),
		cmocka_unit_test(ep_send_zero__in_order),
		cmocka_unit_test(ep_post__told_once_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
