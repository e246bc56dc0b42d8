// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An RDMA program with threads, to be compiled with a sanitizer: one end sends and polls, the other sleeps on its completion channel
// and sends back. Then a send that another thread completes, Writes and a Read. It connects as tests/check/pair.h does. Its argument
// is "right" or a fault of fault.h.
#include "../../check/pair.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "fault.h"

enum {
	ROUNDS = 200,
	OUTBOX = 1024, /* offset of what an end sends */
};

static struct pair pair;

static void send_outbox(struct end *end)
{
	struct ibv_sge sge = end_sge(end, OUTBOX, MESSAGE);
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	EXPECT(ibv_post_send(end->qp, &wr, &bad) == 0);
}

static struct ibv_wc sleep_for_completion(struct end *end)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
		EXPECT(ibv_req_notify_cq(end->cq, 0) == 0);
		if (ibv_poll_cq(end->cq, 1, &wc) == 1)
			break;
		EXPECT(ibv_get_cq_event(end->channel, &cq, &context) == 0);
		ibv_ack_cq_events(cq, 1);
	}
	return wc;
}

static struct ibv_wc poll_for_completion(struct end *end)
{
	return expect_completion(end->cq);
}

/* Returns once that many more completions have come, of receives and sends in any order. */
static void collect(struct end *end, struct ibv_wc (*next)(struct end *end), int completions)
{
	while (completions--) {
		struct ibv_wc wc = next(end);

		EXPECT(wc.status == IBV_WC_SUCCESS);
		EXPECT(wc.opcode != IBV_WC_RECV || wc.byte_len == MESSAGE);
	}
}

/* The end that sends back. Its outbox is free again when the send of the round before has completed. */
static void *echo(void *arg)
{
	struct end *end = &pair.b;

	for (int round = 0; round < ROUNDS; round++) {
		collect(end, sleep_for_completion, round ? 2 : 1);
		for (int i = 0; i < MESSAGE; i++)
			end->memory[OUTBOX + i] = (char)(end->memory[INBOX + i] + 1);
		if (round + 1 < ROUNDS)
			end_recv(end);
		send_outbox(end);
	}
	collect(end, sleep_for_completion, 1);
	return arg;
}

static void talk(struct end *end)
{
	for (int round = 0; round < ROUNDS; round++) {
		memset(end->memory + OUTBOX, round, MESSAGE);
		end_recv(end);
		send_outbox(end);
		collect(end, poll_for_completion, 2);
		for (int i = 0; i < MESSAGE; i++)
			EXPECT(end->memory[INBOX + i] == (char)(round + 1));
	}
}

/* Watches memory that a Write fills, as programs do that want no completion for it. */
static void *watch(void *arg)
{
	const char *byte = pair.b.memory + WINDOW + MESSAGE - 1;

	while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != 'w')
		sched_yield();
	return arg;
}

/* Until the answer to the Read the Write has been placed. */
static void write_and_read(struct end *end, struct end *peer)
{
	struct ibv_sge sge = end_sge(end, OUTBOX, MESSAGE), back = end_sge(end, WINDOW, MESSAGE);
	struct ibv_send_wr write = wr_write(&sge, peer, WINDOW), read, *bad;

	memset(end->memory + OUTBOX, 'w', MESSAGE);
	EXPECT(ibv_post_send(end->qp, &write, &bad) == 0);
	read = wr_read(&back, peer, WINDOW);
	EXPECT(ibv_post_send(end->qp, &read, &bad) == 0);
	collect(end, poll_for_completion, 2);
	EXPECT(!memcmp(end->memory + OUTBOX, end->memory + WINDOW, MESSAGE));
	EXPECT(!memcmp(peer->memory + WINDOW, end->memory + WINDOW, MESSAGE));
}

/* The outbox is this thread's once the completion says so, of a send that another thread has posted. */
static void *reap(void *arg)
{
	collect(arg, poll_for_completion, 1);
	memset(pair.a.memory + OUTBOX, 'r', MESSAGE);
	return arg;
}

static void hand_over(struct end *end, struct end *peer)
{
	pthread_t thread;

	end_recv(peer);
	EXPECT(pthread_create(&thread, NULL, reap, end) == 0);
	memset(end->memory + OUTBOX, 'h', MESSAGE);
	send_outbox(end);
	EXPECT(pthread_join(thread, NULL) == 0);
	collect(peer, poll_for_completion, 1);
}

int main(int argc, char **argv)
{
	struct ibv_device_attr attr;
	pthread_t thread, watcher;

	EXPECT(argc == 2);
	expect_loaded();
	pair_open(&pair);
	EXPECT(!strcmp(ibv_get_device_name(pair.context->device), "anywarp0"));
	EXPECT(ibv_query_device(pair.context, &attr) == 0 && attr.max_qp > 0);
	end_recv(&pair.b);
	EXPECT(pthread_create(&thread, NULL, echo, NULL) == 0);
	talk(&pair.a);
	EXPECT(pthread_join(thread, NULL) == 0);
	hand_over(&pair.a, &pair.b);
	EXPECT(pthread_create(&watcher, NULL, watch, NULL) == 0);
	write_and_read(&pair.a, &pair.b);
	EXPECT(pthread_join(watcher, NULL) == 0);
	fault_make(argv[1]);
	pair_close(&pair);
	puts("done");
	return 0;
}
