// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of 2^31 octets, the most that a WR may carry. The memory is 2 MiB, mapped 1024 times in
// a row.
#define _GNU_SOURCE /* memfd_create */
#include "../lib/uqp_pair.h"
#include "net/mr/mrtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PIECE_OCTETS (2u << 20)

static uint8_t *map_pieces(struct aw_mr *mr, const void *pd)
{
	int fd = memfd_create("largest", MFD_CLOEXEC);
	uint8_t *base = mmap(NULL, AW_MSG_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(base, MAP_FAILED);
	assert_int_equal(ftruncate(fd, PIECE_OCTETS), 0);
	for (size_t at = 0; at < AW_MSG_MAX; at += PIECE_OCTETS)
		assert_ptr_not_equal(mmap(base + at, PIECE_OCTETS, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fd, 0),
				     MAP_FAILED);
	close(fd);
	*mr = (struct aw_mr){
		.access = AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ,
		.iova = (uintptr_t)base,
		.len = AW_MSG_MAX,
		.host = base,
		.pd = pd,
	};
	assert_int_equal(aw_mr_add(mr), 0);
	return base;
}

static void post(struct end *e, enum aw_op op, const struct aw_mr *local,
		 const struct aw_mr *remote)
{
	aw_uqp_send_begin(e->qp);
	struct aw_swqe *w = aw_uqp_send_slot(e->qp);

	*w = (struct aw_swqe){ .op = op,
			       .flags = AW_WR_SIGNALED,
			       .len = AW_MSG_MAX,
			       .sge_count = 1,
			       .stag = remote->stag,
			       .to = remote->iova,
			       .sge = { { local->iova, AW_MSG_MAX, local->stag } } };
	aw_uqp_send_commit(e->qp);
	aw_uqp_send_end(e->qp);
}

static void post__moves_the_largest_message(void **state)
{
	struct pair *p = *state;
	struct aw_mr from, to;
	uint8_t *source = map_pieces(&from, &p->pd);
	uint8_t *sink = map_pieces(&to, &p->pd);
	const struct aw_sge sge = { to.iova, AW_MSG_MAX, to.stag };

	for (size_t i = 0; i < PIECE_OCTETS; i++)
		source[i] = (uint8_t)(i * 31 + i / 251);
	post(&p->a, AW_OP_WRITE, &from, &to);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	post(&p->a, AW_OP_SEND, &from, &to);
	struct aw_cq_entry received = end_wait_cqe(&p->b);

	assert_int_equal(received.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(received.cqe.byte_len, AW_MSG_MAX);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	assert_memory_equal(sink, source, PIECE_OCTETS);
	memset(sink, 0, PIECE_OCTETS);
	post(&p->b, AW_OP_READ, &to, &from);
	received = end_wait_cqe(&p->b);
	assert_int_equal(received.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(received.cqe.byte_len, AW_MSG_MAX);
	assert_memory_equal(sink, source, PIECE_OCTETS);
	aw_mr_remove(&from);
	aw_mr_remove(&to);
	munmap(source, AW_MSG_MAX);
	munmap(sink, AW_MSG_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(post__moves_the_largest_message, pair_setup,
						pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
