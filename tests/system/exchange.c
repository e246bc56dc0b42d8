// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Steps that both ends of a connection do at the same time; see exchange.h.
#include "exchange.h"

#include "link.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>

#define ADD 0x100000001ULL
#define LAST_WORDS 3
#define BLOCKS 256
#define BLOCK_OCTETS 256

/* A message of its own, or behind data placed otherwise; in the order of the network. */
struct note {
	uint32_t turn;
	uint32_t window_rkey;
};

struct step {
	const char *name;
	/* Posts what it is about; one receive of the peer is taken by it. */
	void (*act)(struct exchange *x, size_t size);
	/* What the peer's same step did here, and what came of ours. */
	void (*verify)(struct exchange *x, size_t size, const struct ibv_wc *message);
};

/*
 * The data of a turn: block after block of the table, beginning where seed and turn say. Whole
 * blocks are copied and compared, since a sanitizer makes loops over octets slow.
 */
static uint8_t blocks[BLOCKS][BLOCK_OCTETS];
static pthread_once_t blocks_made = PTHREAD_ONCE_INIT;

static void make_blocks(void)
{
	for (int block = 0; block < BLOCKS; block++)
		for (int i = 0; i < BLOCK_OCTETS; i++)
			blocks[block][i] = (uint8_t)(block + i * 7);
}

static const uint8_t *block_at(uint32_t seed, uint32_t turn, size_t at)
{
	return blocks[(seed + turn * 29 + at / BLOCK_OCTETS) % BLOCKS];
}

static size_t block_size(size_t size, size_t at)
{
	return size - at < BLOCK_OCTETS ? size - at : BLOCK_OCTETS;
}

static void fill(struct exchange *x)
{
	const struct end *end = x->end;

	for (size_t at = 0; at < end->size_max; at += BLOCK_OCTETS)
		memcpy(end->memory.out + at, block_at(end->mine.seed, x->turn, at),
		       block_size(end->size_max, at));
}

static void check_data(const struct exchange *x, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at += BLOCK_OCTETS)
		CHECK(!memcmp(data + at, block_at(x->end->peer.seed, x->turn, at),
			      block_size(size, at)));
}

static void post_note(struct exchange *x, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct note note = { .turn = htonl(x->turn), .window_rkey = htonl(x->end->window_rkey) };
	struct ibv_send_wr wr = { .opcode = opcode,
				  .send_flags = flags,
				  .invalidate_rkey = x->end->peer_window_rkey };

	memcpy(x->end->memory.note, &note, sizeof(note));
	end_post(x->end, &wr, x->end->memory.note, sizeof(note));
}

static struct note check_note(struct exchange *x, const struct ibv_wc *message)
{
	struct note note;

	CHECK(message->opcode == IBV_WC_RECV && message->byte_len == sizeof(note));
	memcpy(&note, end_received(x->end), sizeof(note));
	CHECK(ntohl(note.turn) == x->turn);
	return note;
}

static void post_write(struct exchange *x, size_t size, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { x->end->peer.target, rkey } };

	end_post(x->end, &wr, x->end->memory.out, size);
}

static void write_act(struct exchange *x, size_t size)
{
	post_write(x, size, x->end->peer.rkey);
	post_note(x, IBV_WR_SEND, 0);
}

static void write_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	CHECK(!(message->wc_flags & IBV_WC_WITH_INV));
	check_note(x, message);
	check_data(x, x->end->memory.target, size);
}

static void post_read(struct exchange *x, size_t size)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { x->end->peer.out, x->end->peer.rkey } };

	end_post(x->end, &wr, x->end->memory.in, size);
}

/* The peer makes its next data when it has our note: that waits for the response, else they may mix. */
static void read_act(struct exchange *x, size_t size)
{
	post_read(x, size);
	post_note(x, IBV_WR_SEND, IBV_SEND_FENCE);
}

static void read_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	check_note(x, message);
	check_data(x, x->end->memory.in, size);
}

static void post_send(struct exchange *x, size_t size, enum ibv_wr_opcode opcode,
		      unsigned int flags)
{
	struct ibv_send_wr wr = { .opcode = opcode,
				  .send_flags = flags,
				  .imm_data = htonl(x->turn ^ x->end->mine.seed),
				  .wr.rdma = { x->end->peer.target, x->end->peer.rkey } };

	end_post(x->end, &wr, x->end->memory.out, size);
}

static void send_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_SEND, 0);
}

static void send_se_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_SEND, IBV_SEND_SOLICITED);
}

static void send_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	CHECK(message->opcode == IBV_WC_RECV && message->byte_len == size);
	CHECK(!(message->wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM)));
	check_data(x, end_received(x->end), size);
}

static void write_imm_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
}

static void write_imm_se_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED);
}

static void check_imm(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	CHECK(message->wc_flags & IBV_WC_WITH_IMM);
	CHECK(ntohl(message->imm_data) == (x->turn ^ x->end->peer.seed));
	CHECK(message->byte_len == size);
}

static void write_imm_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	CHECK(message->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
	check_imm(x, size, message);
	check_data(x, x->end->memory.target, size);
}

static void send_imm_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_SEND_WITH_IMM, 0);
}

static void send_imm_se_act(struct exchange *x, size_t size)
{
	post_send(x, size, IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED);
}

static void send_imm_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	CHECK(message->opcode == IBV_WC_RECV);
	check_imm(x, size, message);
	check_data(x, end_received(x->end), size);
}

/* Opens a window of that size over target for the peer. */
static void bind_act(struct exchange *x, size_t size)
{
	struct end *end = x->end;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	if (!end->window) {
		end->window = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
		CHECK(end->window);
		end->window_rkey = end->window->rkey;
	}
	end->window_rkey = ibv_inc_rkey(end->window_rkey);
	wr.bind_mw.mw = end->window;
	wr.bind_mw.rkey = end->window_rkey;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = end->mr,
					   .addr = end->mine.target,
					   .length = size,
					   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	end_post(end, &wr, NULL, 0);
	post_note(x, IBV_WR_SEND, 0);
}

static void bind_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	(void)size;
	x->end->peer_window_rkey = ntohl(check_note(x, message).window_rkey);
}

static void invalidate_act(struct exchange *x, size_t size)
{
	post_write(x, size, x->end->peer_window_rkey);
	post_note(x, IBV_WR_SEND_WITH_INV, 0);
}

static void invalidate_se_act(struct exchange *x, size_t size)
{
	post_write(x, size, x->end->peer_window_rkey);
	post_note(x, IBV_WR_SEND_WITH_INV, IBV_SEND_SOLICITED);
}

static void invalidate_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	check_note(x, message);
	CHECK(message->wc_flags & IBV_WC_WITH_INV);
	CHECK(message->invalidated_rkey == x->end->window_rkey);
	check_data(x, x->end->memory.target, size);
}

static uint64_t swapped(uint64_t cell)
{
	return cell * 3 + 1;
}

static void post_atomic(struct exchange *x, enum ibv_wr_opcode opcode, uint64_t compare_add,
			uint64_t swap, uint64_t *result)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	wr.wr.atomic.remote_addr = x->end->peer.cell;
	wr.wr.atomic.rkey = x->end->peer.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	end_post(x->end, &wr, result, sizeof(*result));
}

/* The note says that the atomics are done, so it waits for their responses. */
static void atomic_act(struct exchange *x, size_t size)
{
	uint64_t sum = x->peer_cell + ADD, *cells = x->end->memory.cells;

	(void)size;
	post_atomic(x, IBV_WR_ATOMIC_FETCH_AND_ADD, ADD, 0, &cells[1]);
	post_atomic(x, IBV_WR_ATOMIC_CMP_AND_SWP, sum, swapped(sum), &cells[2]);
	post_note(x, IBV_WR_SEND, IBV_SEND_FENCE);
}

static void atomic_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	uint64_t *cells = x->end->memory.cells;

	(void)size;
	check_note(x, message);
	CHECK(cells[1] == x->peer_cell);
	CHECK(cells[2] == x->peer_cell + ADD);
	x->peer_cell = swapped(x->peer_cell + ADD);
	x->my_cell = swapped(x->my_cell + ADD);
	CHECK(cells[0] == x->my_cell);
}

/* An Atomic Write is done when a later Send arrives, so that no fence is needed. */
static void atomic_write_act(struct exchange *x, size_t size)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE,
				  .wr.rdma = { x->end->peer.cell, x->end->peer.rkey } };
	uint64_t *cells = x->end->memory.cells;

	(void)size;
	cells[1] = swapped(x->peer_cell);
	end_post(x->end, &wr, &cells[1], sizeof(cells[1]));
	post_note(x, IBV_WR_SEND, 0);
}

static void atomic_write_verify(struct exchange *x, size_t size, const struct ibv_wc *message)
{
	(void)size;
	check_note(x, message);
	x->peer_cell = swapped(x->peer_cell);
	x->my_cell = swapped(x->my_cell);
	CHECK(x->end->memory.cells[0] == x->my_cell);
}

static const struct step steps[] = {
	{ "write", write_act, write_verify },
	{ "read", read_act, read_verify },
	{ "send", send_act, send_verify },
	{ "send-se", send_se_act, send_verify },
	{ "bind", bind_act, bind_verify },
	{ "invalidate", invalidate_act, invalidate_verify },
	{ "invalidate-se", invalidate_se_act, invalidate_verify },
	{ "write-imm", write_imm_act, write_imm_verify },
	{ "write-imm-se", write_imm_se_act, write_imm_verify },
	{ "send-imm", send_imm_act, send_imm_verify },
	{ "send-imm-se", send_imm_se_act, send_imm_verify },
	{ "atomic", atomic_act, atomic_verify },
	{ "atomic-write", atomic_write_act, atomic_write_verify },
};

static const struct step *find_step(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (strlen(steps[i].name) == length && !memcmp(steps[i].name, name, length))
			return &steps[i];
	return NULL;
}

bool exchange_parse(const char *names, const struct step **found)
{
	for (int i = 0; i < EXCHANGE_STEPS_MAX - 1; i++) {
		size_t length = strcspn(names, ",");

		found[i] = find_step(names, length);
		found[i + 1] = NULL;
		if (!found[i])
			return false;
		if (!names[length])
			return true;
		names += length + 1;
	}
	return false;
}

void exchange_begin(struct exchange *x, struct end *end, const struct step *const *found)
{
	pthread_once(&blocks_made, make_blocks);
	*x = (struct exchange){ .end = end, .steps = found };
	fill(x);
}

/* The peer verified our step and made its next data. */
static bool wait_done(struct exchange *x)
{
	struct ibv_wc message;

	post_note(x, IBV_WR_SEND, 0);
	if (!end_wait_sent(x->end) || !end_wait_message(x->end, &message))
		return false;
	check_note(x, &message);
	end_receive(x->end);
	return true;
}

static bool run_step(struct exchange *x, const struct step *step, size_t size)
{
	struct ibv_wc message;

	step->act(x, size);
	if (!end_wait_sent(x->end) || !end_wait_message(x->end, &message))
		return false;
	step->verify(x, size, &message);
	end_receive(x->end);
	x->turn++;
	fill(x);
	return wait_done(x);
}

bool exchange_round(struct exchange *x, size_t size)
{
	x->my_cell = x->my_cell ? x->my_cell : x->end->mine.seed;
	x->peer_cell = x->peer_cell ? x->peer_cell : x->end->peer.seed;
	for (int i = 0; x->steps[i]; i++)
		if (!run_step(x, x->steps[i], size))
			return false;
	return true;
}

bool exchange_last_words(struct exchange *x, size_t size, bool is_speaker)
{
	struct ibv_wc message;

	for (int i = 0; is_speaker && i < LAST_WORDS; i++) {
		post_write(x, size, x->end->peer.rkey);
		post_send(x, size, IBV_WR_SEND, 0);
	}
	if (is_speaker) {
		CHECK(rdma_disconnect(x->end->id) == 0);
		return end_wait_sent(x->end);
	}
	for (int i = 0; i < LAST_WORDS; i++) {
		if (!end_wait_message(x->end, &message))
			return false;
		send_verify(x, size, &message);
	}
	check_data(x, x->end->memory.target, size);
	return true;
}

bool exchange_last_read(struct exchange *x, size_t size, bool is_speaker)
{
	if (!is_speaker)
		return true;
	post_read(x, size);
	CHECK(rdma_disconnect(x->end->id) == 0);
	if (!end_wait_sent(x->end))
		return false;
	check_data(x, x->end->memory.in, size);
	return true;
}

bool exchange_violate(struct exchange *x, bool is_speaker)
{
	struct ibv_wc message;

	if (is_speaker)
		post_write(x, 1, ~x->end->peer.rkey);
	return !end_wait_message(x->end, &message);
}
