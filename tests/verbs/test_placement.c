// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomic writes and flushes as a program posts them, and what comes of them. ibv_wr_flush is not in Debian 12's
// headers, so its slot is called as newer ones do.
#define _GNU_SOURCE // memfd_create
#include "../lib/until.h"
#include "pair.h"

#include "net/qp/uqp.h"
#include "ring/lock.h"
#include "verbs/newer.h"
#include "verbs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	CELL = 4096, /* where in b's memory */
	FILE_LEN = 8192,
	TURNS = 20000,
};

static uint64_t at_b(const struct pair *p)
{
	return (uintptr_t)p->b.memory + CELL;
}

static int write_atomically(const struct pair *p, unsigned int flags, uint32_t length)
{
	struct ibv_sge sge = side_sge(&p->a, 0, length);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_ATOMIC_WRITE,
					.send_flags = IBV_SEND_SIGNALED | flags,
					.sg_list = &sge,
					.num_sge = 1 };

	wr.wr.rdma.remote_addr = at_b(p);
	wr.wr.rdma.rkey = p->b.mr->rkey;
	return ibv_post_send(p->a.qp, &wr, &bad);
}

static void expect_sent(const struct pair *p, int opcode, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_wait(p->a.send_cq);

	assert_int_equal(wc.status, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	vb_wr_flush_fn *fn;

	memcpy(&fn, (char *)qp + VB_WR_FLUSH_AT, sizeof(fn));
	fn(qp, rkey, addr, len, type, level);
}

struct flush {
	uint32_t rkey;
	uint64_t addr;
	size_t len;
	uint8_t type, level;
};

static int flush(const struct pair *p, const struct flush *f)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->a.qp);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	wr_flush(qp, f->rkey, f->addr, f->len, f->type, f->level);
	return ibv_wr_complete(qp);
}

static void query_device_ex__says_so(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr_ex attr;
	uint64_t all = VB_DEVICE_FLUSH_GLOBAL | VB_DEVICE_FLUSH_PERSISTENT | VB_DEVICE_ATOMIC_WRITE;

	assert_int_equal(ibv_query_device_ex(f->context, NULL, &attr), 0);
	assert_int_equal(attr.device_cap_flags_ex & all, all);
}

static void post_send__atomic_write(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	memcpy(p.a.memory, "abcdefgh", 8);
	assert_int_equal(write_atomically(&p, 0, 8), 0);
	expect_sent(&p, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
	assert_memory_equal(p.b.memory + CELL, "abcdefgh", 8);
	memcpy(p.a.memory, "01234567", 8);
	assert_int_equal(write_atomically(&p, IBV_SEND_INLINE, 8), 0);
	expect_sent(&p, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
	assert_memory_equal(p.b.memory + CELL, "01234567", 8);
	assert_int_equal(p.b.memory[CELL + 8], 0);
	assert_int_equal(write_atomically(&p, 0, 7), EINVAL);
	assert_int_equal(write_atomically(&p, 0, 9), EINVAL);
	pair_destroy(&p);
}

static void wr_atomic_write__takes_the_bytes_at_once(void **state)
{
	struct ibv_qp_ex *qp;
	char bytes[8];
	struct pair p;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	memcpy(bytes, "abcdefgh", 8);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	qp->wr_id = 7;
	ibv_wr_atomic_write(qp, p.b.mr->rkey, at_b(&p), bytes);
	memset(bytes, 0, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_wait(p.a.send_cq).wr_id, 7);
	assert_memory_equal(p.b.memory + CELL, "abcdefgh", 8);
	pair_destroy(&p);
}

static void atomic_write__refused(void **state)
{
	static const struct {
		uint64_t offset;
		unsigned int access; /* of the MR that is named */
		enum ibv_wc_status status;
	} cases[] = {
		{ CELL, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS },
		{ CELL, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR },
		{ CELL + 4, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_INV_REQ_ERR },
		{ PAIR_MEMORY - 7, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR },
		{ PAIR_MEMORY, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t octets = 0x0102030405060708;
		struct ibv_qp_ex *qp;
		struct ibv_mr *mr;
		struct pair p;

		pair_make(&p, f, NULL);
		mr = ibv_reg_mr(f->pd, p.b.memory, PAIR_MEMORY,
				(int)(IBV_ACCESS_LOCAL_WRITE | cases[i].access));
		assert_non_null(mr);
		qp = ibv_qp_to_qp_ex(p.a.qp);
		ibv_wr_start(qp);
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(qp, mr->rkey, (uintptr_t)p.b.memory + cases[i].offset, &octets);
		assert_int_equal(ibv_wr_complete(qp), 0);
		expect_sent(&p, IBV_WC_ATOMIC_WRITE, cases[i].status);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
}

struct watcher {
	_Atomic uint64_t *cell;
	atomic_bool stop;
	uint64_t torn;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;

	while (!atomic_load(&w->stop)) {
		uint64_t seen = atomic_load_explicit(w->cell, memory_order_relaxed);

		w->torn += seen >> 32 != (seen & UINT32_MAX);
	}
	return NULL;
}

/* The host never sees half of a value. */
static void atomic_write__is_whole(void **state)
{
	struct watcher watcher = { .torn = 0 };
	struct ibv_qp_ex *qp;
	pthread_t thread;
	struct pair p;

	pair_make(&p, *state, NULL);
	watcher.cell = (_Atomic uint64_t *)(void *)(p.b.memory + CELL);
	assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint64_t value = (uint64_t)i << 32 | i;

		ibv_wr_start(qp);
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(qp, p.b.mr->rkey, at_b(&p), &value);
		assert_int_equal(ibv_wr_complete(qp), 0);
		expect_sent(&p, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
		assert_memory_equal(p.b.memory + CELL, &value, 8);
	}
	atomic_store(&watcher.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(watcher.torn, 0);
	pair_destroy(&p);
}

static void flush__global(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	for (uint8_t level = VB_FLUSH_RANGE; level <= VB_FLUSH_MR; level++) {
		const struct flush whole = { p.b.mr->rkey, (uintptr_t)p.b.memory, PAIR_MEMORY,
					     VB_FLUSH_GLOBAL, level };
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.a.qp);

		memset(p.a.memory, 0x11 * (level + 1), PAIR_MEMORY);
		ibv_wr_start(qp);
		qp->wr_flags = 0;
		ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.memory);
		ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, PAIR_MEMORY);
		assert_int_equal(ibv_wr_complete(qp), 0);
		assert_int_equal(flush(&p, &whole), 0);
		expect_sent(&p, VB_WC_FLUSH, IBV_WC_SUCCESS);
		assert_memory_equal(p.b.memory, p.a.memory, PAIR_MEMORY);
	}
	pair_destroy(&p);
}

static void flush__refused(void **state)
{
	const struct {
		size_t offset, len;
		uint8_t type, level;
		enum ibv_wc_status status;
	} cases[] = {
		{ 0, PAIR_MEMORY + 1, VB_FLUSH_GLOBAL, VB_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ PAIR_MEMORY, 1, VB_FLUSH_GLOBAL, VB_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR },
		/* Its MR is not for that. */
		{ 0, 8, VB_FLUSH_PERSISTENT, VB_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ 0, 8, VB_FLUSH_GLOBAL | VB_FLUSH_PERSISTENT, VB_FLUSH_MR, IBV_WC_REM_ACCESS_ERR },
	};
	struct pair p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_make(&p, *state, NULL);
		const struct flush one = { p.b.mr->rkey, (uintptr_t)p.b.memory + cases[i].offset,
					   cases[i].len, cases[i].type, cases[i].level };

		assert_int_equal(flush(&p, &one), 0);
		expect_sent(&p, VB_WC_FLUSH, cases[i].status);
		pair_destroy(&p);
	}
}

static void flush__unknown_kinds(void **state)
{
	static const uint8_t kinds[][2] = { { 0, 0 }, { 4, 0 }, { 5, 1 }, { 1, 2 }, { 1, 255 } };
	struct pair p;

	pair_make(&p, *state, NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct flush one = { p.b.mr->rkey, (uintptr_t)p.b.memory, 8, kinds[i][0],
					   kinds[i][1] };

		assert_int_equal(flush(&p, &one), EINVAL);
	}
	assert_int_equal(qp_state(p.a.qp), IBV_QPS_RTS);
	pair_destroy(&p);
}

/* struct ibv_send_wr has no place for the kind of a flush. */
static void post_send__no_flush(void **state)
{
	struct ibv_send_wr *bad, wr = { .opcode = (enum ibv_wr_opcode)VB_WR_FLUSH };
	struct pair p;

	pair_make(&p, *state, NULL);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), EOPNOTSUPP);
	pair_destroy(&p);
}

static void placement__peer_did_not_agree(void **state)
{
	uint64_t octets = 1;
	struct pair p;

	pair_make_plain(&p, *state);
	const struct flush one = { p.b.mr->rkey, (uintptr_t)p.b.memory, 8, VB_FLUSH_GLOBAL,
				   VB_FLUSH_MR };
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.a.qp);

	assert_int_equal(write_atomically(&p, 0, 8), EOPNOTSUPP);
	assert_int_equal(flush(&p, &one), EOPNOTSUPP);
	ibv_wr_start(qp);
	ibv_wr_atomic_write(qp, p.b.mr->rkey, at_b(&p), &octets);
	assert_int_equal(ibv_wr_complete(qp), EOPNOTSUPP);
	assert_int_equal(qp_state(p.a.qp), IBV_QPS_RTS);
	pair_destroy(&p);
}

/* A mapping of a new file in the build's directory. */
static uint8_t *file_map(int *fd, int flags)
{
	char name[] = "placement.XXXXXX";
	uint8_t *at;

	*fd = mkostemp(name, O_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(ftruncate(*fd, FILE_LEN), 0);
	at = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, flags, *fd, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(setenv("AW_TEST_FILE", name, 1), 0);
	return at;
}

static void file_unmap(uint8_t *at, int fd)
{
	assert_int_equal(munmap(at, FILE_LEN), 0);
	unlink(getenv("AW_TEST_FILE"));
	close(fd);
}

static bool is_on_disk(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

static void flush__persistent(void **state)
{
	struct fixture *f = *state;
	int fd, access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 VB_ACCESS_FLUSH_PERSISTENT;
	uint8_t *at = file_map(&fd, MAP_SHARED);
	char there[5] = { 0 };
	struct ibv_mr *mr;
	struct pair p;

	if (!is_on_disk(fd)) {
		file_unmap(at, fd);
		skip();
	}
	pair_make(&p, f, NULL);
	mr = ibv_reg_mr(f->pd, at + 100, FILE_LEN - 100, access);
	assert_non_null(mr);
	memcpy(p.a.memory, "kept!", 5);
	const struct flush range = { mr->rkey, (uintptr_t)at + 5000, 5, VB_FLUSH_PERSISTENT,
				     VB_FLUSH_RANGE };
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.a.qp);

	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)at + 5000);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, 5);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (int i = 0; i < 3; i++) {
		struct flush one = range;

		one.level = i == 1 ? VB_FLUSH_MR : VB_FLUSH_RANGE;
		assert_int_equal(flush(&p, &one), 0);
	}
	for (int i = 0; i < 3; i++)
		expect_sent(&p, VB_WC_FLUSH, IBV_WC_SUCCESS);
	assert_int_equal(pread(fd, there, 5, 5000), 5);
	assert_memory_equal(there, "kept!", 5);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_destroy(&p);
	file_unmap(at, fd);
}

/* What is gone by then cannot be kept: the peer hears so, and nothing says that it was. */
static void flush__persistent_memory_gone(void **state)
{
	struct fixture *f = *state;
	int fd, access = IBV_ACCESS_LOCAL_WRITE | VB_ACCESS_FLUSH_PERSISTENT;
	uint8_t *at = file_map(&fd, MAP_SHARED);
	struct ibv_mr *mr;
	struct pair p;

	if (!is_on_disk(fd)) {
		file_unmap(at, fd);
		skip();
	}
	pair_make(&p, f, NULL);
	mr = ibv_reg_mr(f->pd, at, FILE_LEN, access);
	assert_non_null(mr);
	const struct flush whole = { mr->rkey, 0, 0, VB_FLUSH_PERSISTENT, VB_FLUSH_MR };

	file_unmap(at, fd);
	assert_int_equal(flush(&p, &whole), 0);
	expect_sent(&p, VB_WC_FLUSH, IBV_WC_REM_OP_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_destroy(&p);
}

/* The end that writes back may destroy its QP meanwhile. */
static bool peer_is_ready(const struct pair *p)
{
	struct aw_uqp *uqp = avb_qp_uqp(p->b.qp);
	bool is_ready;

	aw_lock(&uqp->lock);
	is_ready = uqp->core.peer_ready;
	aw_unlock(&uqp->lock);
	return is_ready;
}

static void flush__persistent_and_destroy(void **state)
{
	struct fixture *f = *state;
	int fd, access = IBV_ACCESS_LOCAL_WRITE | VB_ACCESS_FLUSH_PERSISTENT;
	uint8_t *at = file_map(&fd, MAP_SHARED);

	if (!is_on_disk(fd)) {
		file_unmap(at, fd);
		skip();
	}
	for (int i = 0; i < 20; i++) {
		struct pair p;

		pair_make(&p, f, NULL);
		struct ibv_mr *mr = ibv_reg_mr(f->pd, at, FILE_LEN, access);

		assert_non_null(mr);
		at[i] = (uint8_t)i;
		const struct flush whole = { mr->rkey, 0, 0, VB_FLUSH_PERSISTENT, VB_FLUSH_MR };

		assert_int_equal(flush(&p, &whole), 0);
		if (i % 2)
			until(peer_is_ready(&p));
		assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
		p.b.qp = qp_make(f);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
	file_unmap(at, fd);
}

/* Memory that nothing can make persistent is not registered as such. */
static void reg_mr__persistent(void **state)
{
	static uint8_t memory[FILE_LEN];
	struct fixture *f = *state;
	int fd, shm = memfd_create("placement", MFD_CLOEXEC);
	int both = VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_FLUSH_PERSISTENT;
	uint8_t *copy = file_map(&fd, MAP_PRIVATE), *at;
	struct ibv_mr *mr;
	bool on_disk = is_on_disk(fd);

	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, copy, FILE_LEN, VB_ACCESS_FLUSH_PERSISTENT));
	file_unmap(copy, fd);
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, memory, FILE_LEN, both));
	mr = ibv_reg_mr(f->pd, memory, FILE_LEN, VB_ACCESS_FLUSH_GLOBAL);
	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, both),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ftruncate(shm, FILE_LEN), 0);
	at = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, shm, 0);
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, at, FILE_LEN, VB_ACCESS_FLUSH_PERSISTENT));
	munmap(at, FILE_LEN);
	close(shm);
	if (!on_disk)
		skip();
	at = file_map(&fd, MAP_SHARED);
	mr = ibv_reg_mr(f->pd, at, FILE_LEN, both);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* Behind its end is nothing of the file. */
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, at, (size_t)1 << 40, VB_ACCESS_FLUSH_PERSISTENT));
	unlink(getenv("AW_TEST_FILE"));
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, at, FILE_LEN, VB_ACCESS_FLUSH_PERSISTENT));
	file_unmap(at, fd);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(query_device_ex__says_so),
		WITH(post_send__atomic_write),
		WITH(wr_atomic_write__takes_the_bytes_at_once),
		WITH(atomic_write__refused),
		WITH(atomic_write__is_whole),
		WITH(flush__global),
		WITH(flush__refused),
		WITH(flush__unknown_kinds),
		WITH(post_send__no_flush),
		WITH(placement__peer_did_not_agree),
		WITH(flush__persistent),
		WITH(flush__persistent_memory_gone),
		WITH(flush__persistent_and_destroy),
		WITH(reg_mr__persistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
