// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDs, parent domains and MRs.
#include "fixture.h"

#include "verbs/newer.h"

#include <errno.h>
#include <stdlib.h>

enum {
	LENGTH = 8192,
	REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static uint8_t memory[LENGTH];

static void dealloc_pd__busy_while_an_mr_lives(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, LENGTH, REMOTE);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void alloc_parent_domain__stands_for_its_pd(void **state)
{
	struct fixture *f = *state;
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(f->context, &td_attr);
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &attr);
	struct ibv_mr *mr = ibv_reg_mr(parent, memory, LENGTH, REMOTE);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void alloc_parent_domain__bad_arguments(void **state)
{
	struct fixture *f = *state;
	struct ibv_parent_domain_init_attr no_pd = { .pd = NULL };
	struct ibv_parent_domain_init_attr allocators = {
		.pd = f->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	struct ibv_parent_domain_init_attr unknown = { .pd = f->pd, .comp_mask = 1 << 2 };

	FAILS_WITH(EINVAL, ibv_alloc_parent_domain(f->context, &no_pd));
	FAILS_WITH(EINVAL, ibv_alloc_parent_domain(f->context, &allocators));
	FAILS_WITH(EOPNOTSUPP, ibv_alloc_parent_domain(f->context, &unknown));
}

/* A program's allocator: pieces of `room`, one behind the other. */
struct heap {
	struct ibv_pd *pd;
	uint8_t *room;
	size_t used;
	int live;
	enum {
		HEAP_GIVES,
		HEAP_FAILS,
		HEAP_DEFERS
	} mood;
};

#define HEAP_ROOM (1 << 20)

static void *heap_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			uint64_t resource_type)
{
	struct heap *heap = context;
	void *at;

	(void)resource_type;
	heap->pd = pd;
	if (heap->mood == HEAP_FAILS)
		return NULL;
	if (heap->mood == HEAP_DEFERS)
		return IBV_ALLOCATOR_USE_DEFAULT;
	heap->used = (heap->used + alignment - 1) / alignment * alignment;
	assert_in_range(size, 1, HEAP_ROOM - heap->used);
	at = heap->room + heap->used;
	heap->used += size;
	heap->live++;
	return at;
}

static void heap_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t resource_type)
{
	struct heap *heap = context;

	(void)resource_type;
	assert_ptr_equal(pd, heap->pd);
	assert_in_range(((uint8_t *)ptr - heap->room), 0, HEAP_ROOM - 1);
	heap->live--;
}

static struct ibv_pd *heap_domain(struct fixture *f, struct heap *heap)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = f->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = heap_alloc,
		.free = heap_free,
		.pd_context = heap,
	};
	struct ibv_pd *pd = ibv_alloc_parent_domain(f->context, &attr);

	assert_non_null(pd);
	return pd;
}

static struct ibv_cq_ex *cq_in(struct fixture *f, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = pd,
	};

	return ibv_create_cq_ex(f->context, &attr);
}

/* Makes and destroys a QP, an SRQ and a CQ there; returns how many pieces they took. */
static int queues_take(struct fixture *f, struct ibv_pd *pd, struct heap *heap)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct fixture there = { .context = f->context, .pd = pd, .cq = f->cq };
	struct ibv_cq_ex *cq = cq_in(f, pd);
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp *qp = qp_make(&there);
	int live;

	srq_attr.attr.max_wr = 8;
	assert_non_null(cq);
	assert_non_null(srq);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 8), 0);
	assert_int_equal(ibv_modify_srq(srq, &srq_attr.attr, IBV_SRQ_MAX_WR), 0);
	live = heap->live;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(heap->live, 0);
	return live;
}

static void alloc_parent_domain__allocates_by_the_program(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct heap heap = { .room = malloc(HEAP_ROOM) };
	struct ibv_pd *pd = heap_domain(f, &heap);

	assert_non_null(heap.room);
	assert_int_equal(queues_take(f, pd, &heap), 3);
	assert_ptr_equal(heap.pd, pd);
	heap.mood = HEAP_DEFERS;
	assert_int_equal(queues_take(f, pd, &heap), 0);
	heap.mood = HEAP_FAILS;
	FAILS_WITH(ENOMEM, ibv_create_qp(pd, &attr));
	FAILS_WITH(ENOMEM, ibv_create_srq(pd, &srq_attr));
	FAILS_WITH(ENOMEM, cq_in(f, pd));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(heap.room);
}

static void reg_mr__shows_what_was_asked(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *a = ibv_reg_mr(f->pd, memory, LENGTH, REMOTE);
	struct ibv_mr *b = ibv_reg_mr(f->pd, memory, LENGTH, REMOTE);

	assert_ptr_equal(a->addr, memory);
	assert_int_equal(a->length, LENGTH);
	assert_ptr_equal(a->pd, f->pd);
	assert_ptr_equal(a->context, f->context);
	assert_int_not_equal(a->lkey, b->lkey);
	assert_int_not_equal(a->rkey, b->rkey);
	assert_int_equal(ibv_dereg_mr(a), 0);
	assert_int_equal(ibv_dereg_mr(b), 0);
}

static void reg_mr__access_flags(void **state)
{
	static const int good[] = { 0,
				    IBV_ACCESS_LOCAL_WRITE,
				    IBV_ACCESS_REMOTE_READ,
				    IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ,
				    REMOTE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
				    REMOTE | IBV_ACCESS_RELAXED_ORDERING,
				    REMOTE | IBV_ACCESS_HUGETLB,
				    VB_ACCESS_FLUSH_GLOBAL };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, LENGTH, good[i]);

		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_REMOTE_WRITE));
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_REMOTE_ATOMIC));
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, memory, LENGTH, 1 << 12));
	FAILS_WITH(EOPNOTSUPP, ibv_reg_dmabuf_mr(f->pd, 0, LENGTH, 0, 0, REMOTE));
}

static void reg_mr__ranges(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *empty = ibv_reg_mr(f->pd, memory, 0, REMOTE);
	struct ibv_mr *top = ibv_reg_mr_iova(f->pd, memory, LENGTH, UINT64_MAX - LENGTH, REMOTE);
	void *hole = (void *)4096; /* below vm.mmap_min_addr: no thread maps anything there */

	assert_non_null(empty);
	assert_non_null(top);
	FAILS_WITH(EFAULT, ibv_reg_mr(f->pd, hole, LENGTH, REMOTE));
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, memory, SIZE_MAX, REMOTE));
	FAILS_WITH(EINVAL, ibv_reg_mr_iova(f->pd, memory, LENGTH, UINT64_MAX - 1, REMOTE));
	assert_int_equal(ibv_dereg_mr(top), 0);
	assert_int_equal(ibv_dereg_mr(empty), 0);
}

static void rereg_mr__changes_translation_pd_and_access(void **state)
{
	int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
		  IBV_REREG_MR_CHANGE_ACCESS;
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(ibv_rereg_mr(mr, all, pd, memory + 16, 32, REMOTE), 0);
	assert_ptr_equal(mr->addr, memory + 16);
	assert_int_equal(mr->length, 32);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, f->pd, NULL, 0, 0), 0);
	assert_int_equal(mr->length, 32);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void rereg_mr__a_failure_leaves_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	uint32_t lkey = mr->lkey;

	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_rereg_mr(mr, 1 << 3, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, SIZE_MAX,
				      0),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(mr->length, LENGTH);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* As rdma-core refuses them itself, whatever the adapter. */
static void rereg_mr__what_no_adapter_is_asked(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	const struct {
		int flags;
		void *addr;
		size_t length;
		int access;
	} cases[] = {
		{ IBV_REREG_MR_CHANGE_TRANSLATION, memory, 0, 0 },
		{ IBV_REREG_MR_CHANGE_TRANSLATION, NULL, LENGTH, 0 },
		{ IBV_REREG_MR_CHANGE_TRANSLATION, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE },
		{ IBV_REREG_MR_CHANGE_PD, NULL, 0, IBV_ACCESS_REMOTE_READ },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = 0;
		assert_int_equal(ibv_rereg_mr(mr, cases[i].flags, f->pd, cases[i].addr,
					      cases[i].length, cases[i].access),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EINVAL);
		assert_ptr_equal(mr->addr, memory);
		assert_int_equal(mr->length, LENGTH);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(dealloc_pd__busy_while_an_mr_lives),
		WITH(alloc_parent_domain__stands_for_its_pd),
		WITH(alloc_parent_domain__bad_arguments),
		WITH(alloc_parent_domain__allocates_by_the_program),
		WITH(reg_mr__shows_what_was_asked),
		WITH(reg_mr__access_flags),
		WITH(reg_mr__ranges),
		WITH(rereg_mr__changes_translation_pd_and_access),
		WITH(rereg_mr__a_failure_leaves_it),
		WITH(rereg_mr__what_no_adapter_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
