// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A device that varies (docs/vary.md): it does what an adapter may do, and in the end all data is right. Without an
// argument the program runs itself once for each seed, since a process has one.
#include "pair.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SEEDS = AW_TEST_SEEDS,
	ROUNDS = 40,
	LONG_ROUNDS = 5, /* of what takes TCP long */
	TRIES = 5000,
	LONG = 200000, /* bytes: several FPDUs of any size */
	PATIENCE_S = 20,
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Watching memory is a race by design. */
__attribute__((no_sanitize("thread"))) static uint8_t byte_at(const uint8_t *p)
{
	return *(const volatile uint8_t *)p;
}

/* Likewise changing what was posted. */
__attribute__((no_sanitize("thread"))) static void set_byte(uint8_t *p, uint8_t byte)
{
	*(volatile uint8_t *)p = byte;
}

static void await_byte(const uint8_t *p, uint8_t byte)
{
	uint64_t start = now_ns();

	while (byte_at(p) != byte)
		assert_true(now_ns() - start < PATIENCE_S * 1000000000ull);
}

static void post(const struct pair *p, enum ibv_wr_opcode opcode, size_t offset, uint32_t length)
{
	struct ibv_sge sge = side_sge(&p->a, offset, length);
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { (uintptr_t)p->b.memory + offset, p->b.mr->rkey },
	};

	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
}

static void expect(struct ibv_cq *cq)
{
	assert_int_equal(wc_wait(cq).status, IBV_WC_SUCCESS);
}

/* RFC 5040 5.5 lets nobody look at a Write before a later Send is delivered: it may be there in part. */
static void write__last_byte_is_there_first(void **state)
{
	struct pair p;
	bool in_part = false;

	pair_make(&p, *state, NULL);
	for (int i = 1; i < TRIES && !in_part; i++) {
		uint8_t byte = (uint8_t)i;

		memset(p.a.memory, byte, LONG);
		post(&p, IBV_WR_RDMA_WRITE, 0, LONG);
		await_byte(&p.b.memory[LONG - 1], byte);
		in_part = byte_at(&p.b.memory[0]) != byte;
		expect(p.a.send_cq);
		side_recv(&p.b, 1, PAIR_MEMORY - 1, 1);
		post(&p, IBV_WR_SEND, PAIR_MEMORY - 1, 1);
		expect(p.b.recv_cq);
		expect(p.a.send_cq);
		assert_memory_equal(p.b.memory, p.a.memory, LONG);
	}
	assert_true(in_part);
	pair_destroy(&p);
}

/* The source belongs to the device until the completion: it may be read long after the post. */
static void send__source_is_read_late(void **state)
{
	struct pair p;
	int late = 0;

	pair_make(&p, *state, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		side_recv(&p.b, 1, 0, 1);
		set_byte(&p.a.memory[0], 'a');
		post(&p, IBV_WR_SEND, 0, 1);
		set_byte(&p.a.memory[0], 'b');
		expect(p.b.recv_cq);
		late += p.b.memory[0] == 'b';
		expect(p.a.send_cq);
	}
	assert_true(late > 0);
	pair_destroy(&p);
}

/* The program polls nothing; the bytes come all the same. */
static void write__comes_without_a_poll(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	for (uint8_t i = 1; i <= 6; i++) {
		set_byte(&p.a.memory[0], i);
		post(&p, IBV_WR_RDMA_WRITE, 0, 1);
		await_byte(&p.b.memory[0], i);
	}
	pair_destroy(&p);
}

/* Posts that wait leave though the program sleeps in poll(2), with the CQ armed before the post or behind it. */
static void event__comes_for_posts_that_wait(void **state)
{
	struct fixture *f = *state;
	struct pair p;

	pair_make(&p, f, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct pollfd fd = { .fd = f->channel->fd, .events = POLLIN };
		struct ibv_cq *cq;
		void *context;

		side_recv(&p.b, 1, 0, 1);
		if (i % 2)
			assert_int_equal(ibv_req_notify_cq(p.b.recv_cq, 0), 0);
		post(&p, IBV_WR_SEND, 0, 1);
		if (!(i % 2)) {
			assert_int_equal(ibv_req_notify_cq(p.b.recv_cq, 0), 0);
			struct ibv_wc wc;

			if (ibv_poll_cq(p.b.recv_cq, 1, &wc) == 1) {
				/* It came before the arm, or it has an event that is for nothing now. */
				expect(p.a.send_cq);
				while (ibv_get_cq_event(f->channel, &cq, &context) == 0)
					ibv_ack_cq_events(cq, 1);
				continue;
			}
		}
		assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		expect(p.b.recv_cq);
		expect(p.a.send_cq);
	}
	pair_destroy(&p);
}

/* Writes that overlap, one behind the other, a Send behind them, and a Read of what they left. */
static void data__is_right_in_the_end(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	for (int i = 1; i <= LONG_ROUNDS; i++) {
		const uint32_t lens[] = { (uint32_t)(i * 7919) % LONG + 1,
					  (uint32_t)(i * 104729) % 999 + 1, 64 };

		for (size_t at = 0; at < LONG; at++)
			p.a.memory[at] = (uint8_t)(at * 7 + (size_t)i);
		side_recv(&p.b, 1, PAIR_MEMORY - 64, 64);
		post(&p, IBV_WR_RDMA_WRITE, 0, lens[0]);
		post(&p, IBV_WR_RDMA_WRITE, lens[0] / 2, lens[1]);
		post(&p, IBV_WR_SEND, PAIR_MEMORY - 64, lens[2]);
		expect(p.b.recv_cq);
		assert_memory_equal(p.b.memory, p.a.memory, lens[0]);
		assert_memory_equal(p.b.memory + lens[0] / 2, p.a.memory + lens[0] / 2, lens[1]);
		for (int n = 0; n < 3; n++)
			expect(p.a.send_cq);
		memset(p.a.memory, 0, lens[0]);
		post(&p, IBV_WR_RDMA_READ, 0, lens[0]);
		expect(p.a.send_cq);
		assert_memory_equal(p.b.memory, p.a.memory, lens[0]);
	}
	pair_destroy(&p);
}

/* Two Writes of one byte to the same place: the later one is what stays. */
static void write__of_the_same_byte_keeps_its_order(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		for (size_t n = 0; n < 4; n++) {
			p.a.memory[n] = (uint8_t)(n + 1);
			struct ibv_sge sge = side_sge(&p.a, n, 1);
			struct ibv_send_wr *bad, wr = {
				.opcode = IBV_WR_RDMA_WRITE,
				.sg_list = &sge,
				.num_sge = 1,
				.wr.rdma = { (uintptr_t)p.b.memory, p.b.mr->rkey },
			};

			assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
		}
		side_recv(&p.b, 1, 8, 1);
		post(&p, IBV_WR_SEND, 8, 1);
		expect(p.b.recv_cq);
		expect(p.a.send_cq);
		assert_int_equal(p.b.memory[0], 4);
		p.b.memory[0] = 0;
	}
	pair_destroy(&p);
}

static int run_scenes(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		WITH(write__last_byte_is_there_first),
		WITH(send__source_is_read_late),
		WITH(write__comes_without_a_poll),
		WITH(event__comes_for_posts_that_wait),
		WITH(data__is_right_in_the_end),
		WITH(write__of_the_same_byte_keeps_its_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The exit status of this program in a process that has the seed; with its output where it fails. */
static int run_seed(const char *self, int seed)
{
	char text[16];
	int status;
	pid_t child = fork();

	snprintf(text, sizeof(text), "%d", seed);
	if (child == 0) {
		setenv("ANYWARP_VARY", text, 1);
		execl("/proc/self/exe", self, "scenes", (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run_scenes();
	for (int seed = 1; seed <= SEEDS; seed++) {
		if (run_seed(argv[0], seed)) {
			fprintf(stderr, "failed with ANYWARP_VARY=%d\n", seed);
			return 1;
		}
	}
	return 0;
}
