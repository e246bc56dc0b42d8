// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs of one process over TCP and TLS: what arrives, also under keys that change all the time, and payload that is gone when it is
// to be sealed from where it lies.
#define _GNU_SOURCE // memfd_create
#include "../lib/gone.h"
#include "../lib/memory_scan.h"
#include "../lib/tcp.h"
#include "../lib/tls_ends.h"
#include "../lib/tls_files.h"
#include "../lib/uqp_pair.h"
#include "net/base/bounds.h"
#include "net/mem/fault.h"
#include "net/mr/mrtab.h"
#include "net/progress/engine.h"
#include "net/tls/tls_impl.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GONE_OCTETS (1u << 18)
#define WHOLE 60000u /* of a message in front of the one whose memory is gone */
#define PAGE 4096u
#define SHORT_WRITES 12
#define SHORT_OCTETS 2000u /* so many FPDUs of which fill more than a record */
#define WAIT_MS 60000 /* nothing takes so long but a hang */

/* fds and sessions: of the end that connects, and of the one that accepts. */
static void connect_ends(int fd[2], struct aw_tls *tls[2])
{
	tcp_pair(fd);
	for (int i = 0; i < 2; i++)
		tcp_unblock(fd[i]);
	tls_shake_hands(fd, tls);
}

/* Without CRCs, as under TLS they are: payload of more than a few bytes stays in the program's memory. */
static void attach(struct aw_uqp *qp, int fd, struct aw_tls *tls, bool initiator)
{
	struct aw_stream stream = {
		.initiator = initiator, .large_fpdus = true, .ird = 16, .ord = 16
	};
	const struct aw_uqp_socket to = { .fd = fd, .tls = tls };

	assert_int_equal(aw_uqp_attach_to(qp, &to, &stream), 0);
}

static struct pair *make_pair(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	aw_fault_watch();
	assert_int_equal(aw_engine_get(), 0);
	end_make(&p->a, &p->pd, NULL);
	end_make(&p->b, &p->pd, NULL);
	return p;
}

static int setup(void **state)
{
	struct pair *p = make_pair();
	struct aw_tls *tls[2];
	int fd[2];

	connect_ends(fd, tls);
	attach(p->b.qp, fd[1], tls[1], false);
	attach(p->a.qp, fd[0], tls[0], true);
	*state = p;
	return 0;
}

/* The other end of a's stream: its records are opened one at a time. */
static struct aw_tls *peer;
static int peer_fd;

static int setup_peer(void **state)
{
	struct pair *p = make_pair();
	struct aw_tls *tls[2];
	int fd[2];

	connect_ends(fd, tls);
	peer = tls[1];
	peer_fd = fd[1];
	attach(p->a.qp, fd[0], tls[0], true);
	*state = p;
	return 0;
}

static int teardown_peer(void **state)
{
	aw_tls_free(peer);
	close(peer_fd);
	return pair_teardown(state);
}

static void fill(struct end *e, uint32_t with)
{
	for (size_t i = 0; i < BUF_OCTETS; i++)
		e->buf[i] = (uint8_t)(i * 31 + i / 251 + with);
}

/* A Write of len bytes in four pieces of unequal length, which are in memory in another order. */
static void write_pieces(struct end *from, struct end *to, uint32_t len)
{
	uint32_t piece = len / 7;
	struct aw_sge *sges;

	aw_uqp_send_begin(from->qp);
	struct aw_swqe *w = aw_uqp_send_slot(from->qp);

	assert_non_null(w);
	*w = (struct aw_swqe){ .op = AW_OP_WRITE,
			       .flags = AW_WR_SIGNALED,
			       .len = len,
			       .sge_count = 4,
			       .stag = to->mr.stag,
			       .to = (uintptr_t)to->buf };
	sges = w->sge; /* the slot has room for as many as the QP */
	sges[0] = end_sge(from, 3 * piece, 2 * piece);
	sges[1] = end_sge(from, 0, piece);
	sges[2] = end_sge(from, 5 * piece, len - 5 * piece);
	sges[3] = end_sge(from, piece, 2 * piece);
	aw_uqp_send_commit(from->qp);
	aw_uqp_send_end(from->qp);
}

static void expect_pieces(const struct end *from, const struct end *to, uint32_t len)
{
	uint32_t piece = len / 7, last = len - 5 * piece;

	assert_memory_equal(to->buf, from->buf + 3 * piece, 2 * piece);
	assert_memory_equal(to->buf + 2 * piece, from->buf, piece);
	assert_memory_equal(to->buf + 3 * piece, from->buf + 5 * piece, last);
	assert_memory_equal(to->buf + 3 * piece + last, from->buf + piece, 2 * piece);
}

/* Each Write is followed by a Send, whose arrival tells that of the Write. */
static void move(struct end *from, struct end *to, uint32_t len, uint32_t with)
{
	struct aw_sge sge = end_sge(to, BUF_OCTETS - 1, 1);

	fill(from, with);
	memset(to->buf, 0, BUF_OCTETS);
	assert_int_equal(aw_uqp_recv(to->qp, 1, &sge, 1), 0);
	write_pieces(from, to, len);
	end_post(from, AW_OP_SEND, to, 1);
	assert_int_equal(end_wait_cqe(to).cqe.status, AW_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(end_wait_cqe(from).cqe.status, AW_WC_SUCCESS);
	expect_pieces(from, to, len);
}

static void move_all(struct pair *p)
{
	static const uint32_t lens[] = { 8,	16383,	16384,	  16385,	 65536,
					 65521, 131072, 1u << 20, BUF_OCTETS - 1 };

	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		move(&p->a, &p->b, lens[i], i);
		move(&p->b, &p->a, lens[i], i + 100);
	}
}

static void writes__arrive_of_any_length(void **state)
{
	move_all(*state);
}

static void writes__arrive_under_keys_that_change(void **state)
{
	atomic_store(&aw_bounds.tls_records_max, 2);
	move_all(*state);
	atomic_store(&aw_bounds.tls_records_max, AW_TLS_RECORDS_MAX);
}

/* The payload of the record's Writes, which are whole. *fpdus: how many there are. */
static size_t look_into_record(const uint8_t *record, size_t len, size_t *fpdus)
{
	size_t at = 0, payload = 0;

	for (*fpdus = 0; at < len; ++*fpdus) {
		size_t ulpdu = get_be16(record + at);

		at += fpdu_size(ulpdu);
		payload += ulpdu - DDP_TAGGED_LEN;
	}
	assert_int_equal(at, len);
	return payload;
}

/* The records of so much payload; of the longest FPDUs each has one, and of short ones many. */
static void take_records(size_t expected, size_t fpdus_most)
{
	static uint8_t record[AW_TLS_RECORD_MAX];
	size_t payload = 0, most = 0;

	while (payload < expected) {
		struct pollfd readable = { .fd = peer_fd, .events = POLLIN };
		size_t fpdus;
		ssize_t n;

		assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
		aw_tls_begin_turn(peer);
		while ((n = aw_tls_recv(peer, record, sizeof(record))) > 0) {
			payload += look_into_record(record, (size_t)n, &fpdus);
			if (fpdus > most)
				most = fpdus;
		}
		assert_true(n < 0 && errno == EAGAIN);
	}
	assert_int_equal(payload, expected);
	assert_int_equal(most, fpdus_most);
}

static void records__have_whole_fpdus(void **state)
{
	static const uint32_t lens[] = { 1u << 20, 5, 16365, BUF_OCTETS, 16364, 300000 };
	struct pair *p = *state;
	size_t payload = 0;

	aw_uqp_send_begin(p->a.qp);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct aw_swqe *w = aw_uqp_send_slot(p->a.qp);

		assert_non_null(w);
		*w = (struct aw_swqe){ .op = AW_OP_WRITE,
				       .len = lens[i],
				       .sge_count = 1,
				       .stag = p->b.mr.stag,
				       .to = (uintptr_t)p->b.buf,
				       .sge = { end_sge(&p->a, 0, lens[i]) } };
		aw_uqp_send_commit(p->a.qp);
		payload += lens[i];
	}
	aw_uqp_send_end(p->a.qp);
	take_records(payload, 2);
}

static void records__have_many_short_fpdus(void **state)
{
	struct pair *p = *state;

	aw_uqp_send_begin(p->a.qp);
	for (int i = 0; i < SHORT_WRITES; i++) {
		struct aw_swqe *w = aw_uqp_send_slot(p->a.qp);

		assert_non_null(w);
		*w = (struct aw_swqe){ .op = AW_OP_WRITE,
				       .len = SHORT_OCTETS,
				       .sge_count = 1,
				       .stag = p->b.mr.stag,
				       .to = (uintptr_t)p->b.buf,
				       .sge = { end_sge(&p->a, 0, SHORT_OCTETS) } };
		aw_uqp_send_commit(p->a.qp);
	}
	aw_uqp_send_end(p->a.qp);
	take_records((size_t)SHORT_WRITES * SHORT_OCTETS,
		     AW_TLS_RECORD_MAX / fpdu_size(DDP_TAGGED_LEN + SHORT_OCTETS));
}

/* Memory of which all but the first page goes. */
struct gone {
	struct aw_mr mr;
	uint8_t *at;
	int file;
};

static void gone_make(struct gone *g, struct end *e)
{
	g->file = memfd_create("gone", MFD_CLOEXEC);
	assert_int_equal(ftruncate(g->file, GONE_OCTETS), 0);
	g->at = gone_map(g->file, GONE_OCTETS);
	assert_ptr_not_equal(g->at, MAP_FAILED);
	g->mr = (struct aw_mr){ .access = AW_ACCESS_LOCAL_WRITE,
				.iova = (uintptr_t)g->at,
				.len = GONE_OCTETS,
				.host = g->at,
				.pd = e->mr.pd };
	assert_int_equal(aw_mr_add(&g->mr), 0);
}

static void gone_end(struct gone *g, bool unmapped)
{
	aw_mr_remove(&g->mr);
	munmap(g->at, unmapped ? PAGE : GONE_OCTETS);
	close(g->file);
}

static void put_send(struct end *e, uint64_t id, struct aw_sge sge)
{
	struct aw_swqe *w = aw_uqp_send_slot(e->qp);

	assert_non_null(w);
	*w = (struct aw_swqe){ .wr_id = id,
			       .op = AW_OP_SEND,
			       .flags = AW_WR_SIGNALED,
			       .len = sge.len,
			       .sge_count = 1,
			       .sge = { sge } };
	aw_uqp_send_commit(e->qp);
}

/*
 * A message whose memory is there, and behind it in the same batch one that needs a page that is gone, from this octet of its
 * memory on: the first arrives, the second fails, and the peer hears of the end.
 */
static void send_gone(struct pair *p, bool unmapped, size_t from)
{
	struct gone gone;
	struct aw_cq_entry entry;

	fill(&p->a, 7);
	gone_make(&gone, &p->a);
	for (uint64_t i = 1; i <= 2; i++) {
		struct aw_sge sge = end_sge(&p->b, i * GONE_OCTETS, GONE_OCTETS);

		assert_int_equal(aw_uqp_recv(p->b.qp, i, &sge, 1), 0);
	}
	if (unmapped)
		assert_int_equal(munmap(gone.at + PAGE, GONE_OCTETS - PAGE), 0);
	else
		assert_int_equal(ftruncate(gone.file, PAGE), 0);
	aw_uqp_send_begin(p->a.qp);
	put_send(&p->a, 1, end_sge(&p->a, 0, WHOLE));
	put_send(&p->a, 2,
		 (struct aw_sge){ gone.mr.iova + from, GONE_OCTETS - (uint32_t)from,
				  gone.mr.stag });
	aw_uqp_send_end(p->a.qp);
	entry = end_wait_cqe(&p->a);
	assert_true(entry.cqe.wr_id == 1 && entry.cqe.status == AW_WC_SUCCESS);
	entry = end_wait_cqe(&p->a);
	assert_true(entry.cqe.wr_id == 2 && entry.cqe.status == AW_WC_LOC_PROT_ERR);
	entry = end_wait_cqe(&p->b);
	assert_true(entry.cqe.wr_id == 1 && entry.cqe.status == AW_WC_SUCCESS);
	assert_int_equal(entry.cqe.byte_len, WHOLE);
	assert_memory_equal(p->b.buf + GONE_OCTETS, p->a.buf, WHOLE);
	assert_int_equal(end_wait_cqe(&p->b).cqe.status, AW_WC_WR_FLUSH_ERR);
	gone_end(&gone, unmapped);
}

static void gone__from_its_first_octet(void **state)
{
	send_gone(*state, true, PAGE);
}

static void gone__within_a_record(void **state)
{
	send_gone(*state, true, PAGE - 1);
}

static void gone__behind_the_end_of_a_file(void **state)
{
	send_gone(*state, false, PAGE - 100);
}

/* A fault of such a thread ends the process: the kernel copies for it. */
static void *be_deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	move_all(arg);
	send_gone(arg, true, PAGE - 1);
	return NULL;
}

static void gone__where_signals_are_blocked(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, be_deaf, *state), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Each end has both, and libcrypto's contexts have a copy. */
static void free__wipes_the_keys(void **state)
{
	struct scan_needle needles[2];
	struct aw_tls *tls[2];
	int fd[2];

	(void)state;
	connect_ends(fd, tls);
	for (int i = 0; i < 2; i++) {
		needles[i] = scan_needle_of(tls[i]->records.seals.key.key);
		assert_true(scan_count(&needles[i]) > 2);
	}
	for (int i = 0; i < 2; i++) {
		aw_tls_free(tls[i]);
		close(fd[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(scan_count(&needles[i]), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, pair_teardown)
#define PEER(test) cmocka_unit_test_setup_teardown(test, setup_peer, teardown_peer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(writes__arrive_of_any_length),	WITH(writes__arrive_under_keys_that_change),
		WITH(gone__from_its_first_octet),	WITH(gone__within_a_record),
		WITH(gone__behind_the_end_of_a_file),	WITH(gone__where_signals_are_blocked),
		PEER(records__have_whole_fpdus),	PEER(records__have_many_short_fpdus),
		cmocka_unit_test(free__wipes_the_keys),
	};

	return cmocka_run_group_tests(tests, tls_files_make, tls_files_remove);
}
