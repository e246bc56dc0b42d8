// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 5040 and 5042 that the driver keeps, not the core: what is negotiated is there, and
// what one stream does to its CQ is no other's matter.
#include "../lib/tcp.h"
#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/mem/fault.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_io.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* RFC 5040 6.1: pair_attach agrees on 16 each way; twice as many are posted, and wait. */
static void rules_net__negotiated_reads_are_there(void **state)
{
	struct pair *p = *state;
	struct end *ends[] = { &p->a, &p->b };

	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(ends[i]->qp->core.stream.ird, 16);
		assert_int_equal(ends[i]->qp->core.stream.ord, 16);
		for (unsigned int n = 0; n < 32; n++)
			end_post(ends[i], AW_OP_READ, ends[!i], 30000);
	}
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int n = 0; n < 32; n++)
			assert_int_equal(end_wait_cqe(ends[i]).cqe.status, AW_WC_SUCCESS);
}

/* RFC 5040 8.1.1: an overflow ends the streams of that CQ, and leaves all others alone. */
static void rules_net__cq_overflow_ends_only_its_own_streams(void **state)
{
	struct pair *p = *state;
	struct pair victim = { .pd = 0 };
	struct aw_cq_entry entry;

	end_make(&victim.a, &victim.pd, NULL);
	end_make(&victim.b, &victim.pd, NULL);
	pair_attach(&victim);
	assert_int_equal(aw_cq_resize(&victim.a.cq, 1), 0);
	end_post(&p->a, AW_OP_WRITE, &p->b, 5);
	for (unsigned int i = 0; i < 3; i++)
		end_post(&victim.a, AW_OP_WRITE, &victim.b, 5);
	end_wait_event(&victim.a, AW_UQP_CLOSED);
	end_wait_event(&victim.b, AW_UQP_CLOSED);
	assert_int_equal(victim.b.qp->core.peer_error, AW_E_LOCAL_CATASTROPHIC); /* 7.1 */
	assert_int_equal(aw_cq_poll(&victim.a.cq, &entry, 1), 1);
	assert_int_equal(aw_cq_poll(&victim.a.cq, &entry, 1), -EIO);

	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	end_post(&p->a, AW_OP_READ, &p->b, 70000);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	assert_int_equal(aw_uqp_state(p->a.qp), AW_QP_RTS);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_RTS);
	end_destroy(&victim.a);
	end_destroy(&victim.b);
}

/* An initiator on a stream whose other end is a bare TCP socket, which is returned. */
static int make_lone(struct end *end, const void *pd)
{
	struct aw_stream stream = { .initiator = true, .crc = true };
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr), fd = tcp_socket(AF_INET), peer;

	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, tcp_addr_len(&addr)), 0);
	peer = tcp_accept(listener);
	close(listener);
	end_make(end, pd, NULL);
	assert_int_equal(aw_uqp_attach(end->qp, fd, &stream), 0);
	return peer;
}

/* Long before a deadline would see to it. */
static void wait_over(struct end *end)
{
	uint64_t start = aw_now_ns();

	while (aw_uqp_state(end->qp) != AW_QP_ERROR)
		assert_true(aw_now_ns() - start < AW_CLOSE_MS / 2 * 1000000ull);
}

/* RFC 5041 6.2.1: behind the peer's FIN ours follows, and then the stream is over. */
static void rules_net__half_closed_stream_is_closed(void **state)
{
	struct end end = { .events = 0 };
	int pd = 0, peer = make_lone(&end, &pd);
	struct pollfd readable = { .fd = peer, .events = POLLIN };
	uint8_t octet;

	(void)state;
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_int_equal(poll(&readable, 1, AW_CLOSE_MS / 2), 1);
	assert_int_equal(recv(peer, &octet, 1, 0), 0);
	wait_over(&end);
	assert_int_equal(end.qp->core.error, AW_OK);
	end_destroy(&end);
	close(peer);
}

/* RFC 5041 6.2.2, RFC 5044 8: a connection that is lost is an error, and all fails at once. */
static void rules_net__lost_connection_is_an_error(void **state)
{
	struct end end = { .events = 0 };
	int pd = 0, peer = make_lone(&end, &pd);
	struct aw_sge sge = end_sge(&end, 0, 10);

	(void)state;
	assert_int_equal(aw_uqp_recv(end.qp, 5, &sge, 1), 0);
	tcp_reset(peer);
	wait_over(&end);
	assert_int_equal(end.qp->core.error, AW_E_MPA_CLOSED);
	assert_int_equal(end_wait_cqe(&end).cqe.status, AW_WC_WR_FLUSH_ERR);
	end_wait_event(&end, AW_UQP_CLOSED);
	end_destroy(&end);
}

enum {
	ADDS = 4000000, /* long enough that two threads meet on a busy machine too */
};

static pthread_barrier_t both_run;

/* As a stream executes its peer's atomics. */
static void *add_one(void *word)
{
	const struct rdmap_atomic_req req = { .op = RDMAP_FETCH_ADD, .add_swap_data = 1 };

	uint64_t before;

	pthread_barrier_wait(&both_run);
	for (unsigned int i = 0; i < ADDS; i++)
		if (!aw_uqp_ops.atomic(NULL, NULL, word, &req, &before))
			return "refused";
	return NULL;
}

/* RFC 7306 5.3. */
static void rules_net__atomics_of_two_streams_lose_nothing(void **state)
{
	uint64_t word = 0;
	pthread_t thread;

	(void)state;
	aw_fault_watch(); /* as a registration does: without, each takes a system call */
	assert_int_equal(pthread_barrier_init(&both_run, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, add_one, &word), 0);
	add_one(&word);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both_run);
	assert_int_equal(word, 2 * ADDS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rules_net__negotiated_reads_are_there),
		TEST(rules_net__cq_overflow_ends_only_its_own_streams),
		TEST(rules_net__half_closed_stream_is_closed),
		TEST(rules_net__lost_connection_is_an_error),
		cmocka_unit_test(rules_net__atomics_of_two_streams_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
