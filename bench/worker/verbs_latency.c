// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ping-pong over verbs. Every WR is signalled, but for Writes that are polled in memory: of those one
// in WRITES_A_SIGNAL, so that a program that watches its memory hardly calls anything.
#include "worker/verbs.h"

#include "worker/fail.h"

#define WRITES_A_SIGNAL 64
#define WRITES_MAX 120 /* posted and not reaped */
#define SENDS_MAX 3
#define VALUES 250 /* of the last byte of a Write, from 1 */

/* The library's threads place into this memory while we look: that is what RDMA Write is. */
__attribute__((no_sanitize("thread"))) static uint8_t octet_at(const uint8_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

__attribute__((no_sanitize("thread"))) static void put_octet(uint8_t *at, uint8_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static enum ibv_wr_opcode opcode_of(const struct args *args)
{
	switch ((enum op)args->op) {
	case OP_SEND:
		return IBV_WR_SEND;
	case OP_WRITE:
		return IBV_WR_RDMA_WRITE;
	case OP_WRITE_CQ:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case OP_READ:
		return IBV_WR_RDMA_READ;
	case OP_SEND_DONE:
		return IBV_WR_SEND;
	}
	return IBV_WR_SEND;
}

/* Posts one message whose last byte has this value. */
static void post(const struct args *args, struct verbs_link *link, uint8_t value)
{
	bool write = args->op == OP_WRITE;

	put_octet(link->out + args->size - 1, value);
	link->posted++;
	verbs_post(link, opcode_of(args), (uint32_t)args->size,
		   !write || link->posted % WRITES_A_SIGNAL == 0);
}

/* Takes back what completed; waits only where there is no room for another post. */
static void reap(const struct args *args, struct verbs_link *link)
{
	uint32_t max = args->op == OP_WRITE ? WRITES_MAX : SENDS_MAX;
	uint32_t each = args->op == OP_WRITE ? WRITES_A_SIGNAL : 1;
	struct ibv_wc wc;

	if (link->posted < each)
		return;
	do {
		link->posted -= each * (uint32_t)verbs_poll(link->lane->send_cq, 1, &wc);
	} while (link->posted >= max);
}

static void wait_receive(const struct session *session, struct verbs_link *link)
{
	struct ibv_wc wc;

	verbs_wait(session, link->lane, (enum mode)session->args.mode, 1, &wc);
}

/* Waits until the last byte has changed. Returns it. */
static uint8_t wait_memory(const struct session *session, const uint8_t *at, uint8_t before)
{
	uint32_t spins = 0;
	uint8_t found;

	while ((found = octet_at(at)) == before)
		verbs_spin(session, &spins);
	return found;
}

/* One message, until it is known to be there. */
static void send_done(const struct session *session, struct verbs_link *link, bool last)
{
	uint32_t spins = 0;
	struct ibv_wc wc;

	post(&session->args, link, last ? LAST_OCTET : 1);
	while (verbs_poll(link->lane->send_cq, 1, &wc) == 0)
		verbs_spin(session, &spins);
}

/* One message there and back; n counts them. */
static void trip(const struct session *session, struct verbs_link *link, uint64_t n, bool last)
{
	const struct args *args = &session->args;
	uint8_t *in = link->in + args->size - 1;
	uint8_t value = last ? LAST_OCTET : (uint8_t)(1 + n % VALUES);

	if (args->op == OP_WRITE) {
		uint8_t before = octet_at(in);

		post(args, link, value);
		reap(args, link);
		wait_memory(session, in, before);
		return;
	}
	post(args, link, value);
	wait_receive(session, link);
	verbs_post_receive(link);
	reap(args, link);
}

static void read_once(const struct session *session, struct verbs_link *link)
{
	struct ibv_wc wc;

	verbs_post(link, IBV_WR_RDMA_READ, (uint32_t)session->args.size, true);
	verbs_wait(session, link->lane, (enum mode)session->args.mode, 1, &wc);
}

/* After Reads, of which the other end hears nothing: a message says that it is over. */
static void say_over(const struct session *session, struct verbs_link *link)
{
	struct ibv_wc wc;

	verbs_post(link, IBV_WR_SEND, 1, true);
	verbs_wait(session, link->lane, (enum mode)session->args.mode, 1, &wc);
}

void verbs_ping(struct session *session, const struct until *until, struct stats *stats)
{
	struct verbs_link *link = &verbs.links[0];
	bool read = session->args.op == OP_READ, last = false;
	uint64_t before = clock_ns();

	for (uint64_t done = 0; !last; done++) {
		uint64_t now;

		last = until_last(until, done, before);
		if (read)
			read_once(session, link);
		else if (session->args.op == OP_SEND_DONE)
			send_done(session, link, last);
		else
			trip(session, link, done, last);
		now = clock_ns();
		stats_add(stats, now - before);
		before = now;
	}
	if (read)
		say_over(session, link);
	/* The next phase begins with a value that is not there. */
	if (session->args.op == OP_WRITE)
		put_octet(link->in + session->args.size - 1, 0);
}

/* Waits for a message and answers it. Returns whether it was the last. */
static bool echo_once(const struct session *session, struct verbs_link *link, uint8_t before)
{
	const struct args *args = &session->args;
	uint8_t *in = link->in + args->size - 1;
	uint8_t value;

	if (args->op == OP_WRITE) {
		value = wait_memory(session, in, before);
		post(args, link, value);
	} else if (args->op == OP_SEND_DONE) {
		wait_receive(session, link);
		value = octet_at(in);
		verbs_post_receive(link);
		return value == LAST_OCTET;
	} else {
		wait_receive(session, link);
		value = octet_at(in);
		post(args, link, value);
		verbs_post_receive(link);
	}
	reap(args, link);
	return value == LAST_OCTET;
}

void verbs_echo(struct session *session)
{
	struct verbs_link *link = &verbs.links[0];
	uint8_t before = 0;
	struct ibv_wc wc;

	if (session->args.op == OP_READ) {
		verbs_wait(session, link->lane, MODE_EVENT, 1, &wc);
		verbs_post_receive(link);
		return;
	}
	while (!echo_once(session, link, before))
		before = octet_at(link->out + session->args.size - 1);
	if (session->args.op == OP_WRITE)
		put_octet(link->in + session->args.size - 1, 0);
}
