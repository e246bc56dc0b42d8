// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A device, PD, MR and device memory that one part of a program has, imported by another one.
#define _GNU_SOURCE // memfd_create
#include "pair.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LENGTH = 4096,
};

static uint8_t memory[LENGTH];

static struct ibv_context *import(const struct ibv_context *context)
{
	struct ibv_context *imported = ibv_import_device(dup(context->cmd_fd));

	assert_non_null(imported);
	return imported;
}

static void import_device__another_context_of_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = import(f->context), *third = import(other);
	int fd = other->cmd_fd;

	assert_ptr_not_equal(other, f->context);
	assert_ptr_equal(other->device, f->context->device);
	assert_int_not_equal(other->async_fd, f->context->async_fd);
	assert_int_equal(ibv_close_device(third), 0);
	assert_int_equal(ibv_close_device(other), 0);
	/* The fd was its own. */
	assert_int_equal(close(fd), -1);
}

static void import_device__foreign_fds(void **state)
{
	int fd = memfd_create("other", MFD_CLOEXEC);

	(void)state;
	FAILS_WITH(EBADF, ibv_import_device(-1));
	FAILS_WITH(EOPNOTSUPP, ibv_import_device(fd));
	assert_int_equal(close(fd), 0);
}

/* Neither its memory nor its QPs are here. */
static void import_device__not_the_parent_s(void **state)
{
	struct fixture *f = *state;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		struct ibv_context *imported = ibv_import_device(dup(f->context->cmd_fd));

		_exit(imported || errno != EOPNOTSUPP);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void import_pd__by_its_handle_in_its_device(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = import(f->context), *stranger = device_open();
	struct ibv_pd *own = ibv_alloc_pd(f->context);
	uint32_t handle = own->handle;
	struct ibv_pd *pd = ibv_import_pd(other, handle);

	assert_non_null(pd);
	assert_ptr_equal(pd->context, other);
	assert_int_equal(pd->handle, handle);
	assert_int_equal(ibv_dealloc_pd(own), EBUSY);
	ibv_unimport_pd(pd);
	FAILS_WITH(ENOENT, ibv_import_pd(stranger, handle));
	FAILS_WITH(ENOENT, ibv_import_pd(other, handle + 1));
	pd = ibv_import_pd(other, handle);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(own), 0);
	FAILS_WITH(ENOENT, ibv_import_pd(other, handle));
	assert_int_equal(ibv_close_device(stranger), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void import_mr__its_keys(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = import(f->context);
	struct ibv_pd *pd = ibv_import_pd(other, f->pd->handle), *strange = ibv_alloc_pd(other);
	struct ibv_mr *own = ibv_reg_mr(f->pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = ibv_import_mr(pd, own->handle);

	assert_non_null(mr);
	assert_int_equal(mr->lkey, own->lkey);
	assert_int_equal(mr->rkey, own->rkey);
	assert_int_equal(mr->length, LENGTH);
	assert_null(mr->addr);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	FAILS_WITH(EINVAL, ibv_import_mr(strange, own->handle));
	FAILS_WITH(EINVAL, ibv_import_mr(pd, own->handle ^ 1));
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dereg_mr(own), 0);
	assert_int_equal(ibv_dealloc_pd(strange), 0);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(other), 0);
}

/* One octet by the imported key, from a QP of the imported PD to one of the own. */
static void octet_send(struct ibv_qp *from, struct ibv_qp *to, uint32_t lkey, struct ibv_cq *cqs[2])
{
	struct ibv_sge in = { (uintptr_t)memory + 1, 1, lkey },
		       out = { (uintptr_t)memory, 1, lkey };
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	memory[0] = 77;
	memory[1] = 0;
	send.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_recv(to, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(from, &send, &bad), 0);
	assert_int_equal(wc_wait(cqs[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(wc_wait(cqs[1]).status, IBV_WC_SUCCESS);
	assert_int_equal(memory[1], 77);
}

static void import_pd__a_qp_in_it_outlives_it(void **state)
{
	struct fixture *f = *state, in_other = { 0 };
	struct ibv_context *other = import(f->context);
	struct ibv_pd *own_pd = ibv_alloc_pd(f->context);
	struct ibv_mr *own = ibv_reg_mr(own_pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_cq *cqs[2] = { ibv_create_cq(other, 8, NULL, NULL, 0), f->cq };
	struct fixture in_own = { .context = f->context, .pd = own_pd, .cq = f->cq };
	struct ibv_qp *to = qp_make(&in_own), *from;
	struct ibv_mr *mr;
	int fds[2];

	in_other = (struct fixture){ .context = other, .cq = cqs[0] };
	in_other.pd = ibv_import_pd(other, own_pd->handle);
	from = qp_make(&in_other);
	mr = ibv_import_mr(in_other.pd, own->handle);
	pair_sockets(fds);
	pair_attach(from, fds[0], true);
	pair_attach(to, fds[1], false);
	octet_send(from, to, mr->lkey, cqs);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(in_other.pd);
	octet_send(from, to, own->lkey, cqs);
	assert_int_equal(ibv_destroy_qp(to), 0);
	assert_int_equal(ibv_dereg_mr(own), 0);
	assert_int_equal(ibv_dealloc_pd(own_pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_dealloc_pd(own_pd), 0);
	assert_int_equal(ibv_destroy_cq(cqs[0]), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void import_dm__the_same_memory(void **state)
{
	static const uint8_t octets[4] = { 1, 2, 3, 4 };
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct fixture *f = *state;
	struct ibv_context *other = import(f->context);
	struct ibv_dm *own = ibv_alloc_dm(f->context, &attr), *dm;
	uint8_t seen[4];

	dm = ibv_import_dm(other, own->handle);
	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_to_dm(own, 8, octets, 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 8, 4), 0);
	assert_memory_equal(seen, octets, 4);
	assert_int_equal(ibv_free_dm(own), EBUSY);
	FAILS_WITH(ENOENT, ibv_import_dm(other, own->handle + 1));
	ibv_unimport_dm(dm);
	assert_int_equal(ibv_free_dm(own), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(import_device__another_context_of_it),
		WITH(import_device__foreign_fds),
		WITH(import_device__not_the_parent_s),
		WITH(import_pd__by_its_handle_in_its_device),
		WITH(import_mr__its_keys),
		WITH(import_pd__a_qp_in_it_outlives_it),
		WITH(import_dm__the_same_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
