// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the watcher of include/anywarp/check.h is told of a request that an end refuses, and what its log says.
#include "anywarp/check.h"
#include "pair.h"

#include <byteswap.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct anywarp_refusal told;
static atomic_int calls;

static void refused(const struct anywarp_refusal *refusal)
{
	told = *refusal;
	atomic_fetch_add(&calls, 1);
}

/* Found as the checker finds it. */
static void watch(anywarp_refused *fn)
{
	void *found = dlsym(RTLD_DEFAULT, "avb_refusal_watch");
	void (*set)(anywarp_refused *);

	assert_non_null(found);
	memcpy(&set, &found, sizeof(set));
	set(fn);
}

struct request {
	enum ibv_wr_opcode opcode;
	uint64_t offset; /* in b's memory */
	uint32_t length;
	uint32_t rkey_change; /* XORed */
};

static enum ibv_wc_status try(struct pair *p, const struct request *request)
{
	struct ibv_sge sge = side_sge(&p->a, 0, request->length);
	struct ibv_send_wr wr = {
		.opcode = request->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;
	const uint64_t addr = (uintptr_t)p->b.memory + request->offset;
	const uint32_t rkey = p->b.mr->rkey ^ request->rkey_change;

	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	return wc_wait(p->a.send_cq).status;
}

/* The event comes behind the watcher's call. */
static void event_await(struct fixture *f, const struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		event = async_wait(f->context);
		ibv_ack_async_event(&event);
	} while (event.element.qp != qp || event.event_type != type);
}

static void refusal_watch__each_request(void **state)
{
	static const struct {
		struct request request;
		unsigned int access;
		enum anywarp_refusal_cause cause;
		enum ibv_event_type event;
	} rows[] = {
		{ { IBV_WR_RDMA_READ, 0, 8, 1 },
		  IBV_ACCESS_REMOTE_READ,
		  ANYWARP_REFUSAL_RKEY,
		  IBV_EVENT_QP_ACCESS_ERR },
		{ { IBV_WR_RDMA_WRITE, PAIR_MEMORY - 4, 8, 0 },
		  IBV_ACCESS_REMOTE_WRITE,
		  ANYWARP_REFUSAL_BOUNDS,
		  IBV_EVENT_QP_ACCESS_ERR },
		{ { IBV_WR_ATOMIC_FETCH_AND_ADD, PAIR_MEMORY, 8, 0 },
		  IBV_ACCESS_REMOTE_ATOMIC,
		  ANYWARP_REFUSAL_BOUNDS,
		  IBV_EVENT_QP_ACCESS_ERR },
		{ { IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0 },
		  IBV_ACCESS_REMOTE_ATOMIC,
		  ANYWARP_REFUSAL_UNALIGNED,
		  IBV_EVENT_QP_REQ_ERR },
	};

	watch(refused);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct request *request = &rows[i].request;
		const bool is_known = rows[i].cause != ANYWARP_REFUSAL_RKEY;
		struct pair p;

		pair_make(&p, *state, NULL);
		atomic_store(&calls, 0);
		try(&p, request);
		event_await(*state, p.b.qp, rows[i].event);
		assert_int_equal(atomic_load(&calls), 1);
		assert_ptr_equal(told.qp, p.b.qp);
		assert_int_equal(told.cause, rows[i].cause);
		assert_int_equal(told.access, rows[i].access);
		assert_int_equal(told.rkey, p.b.mr->rkey ^ request->rkey_change);
		assert_int_equal(told.addr, (uintptr_t)p.b.memory + request->offset);
		assert_int_equal(told.length, request->length);
		assert_int_equal(told.start, is_known ? (uintptr_t)p.b.memory : 0);
		assert_int_equal(told.size, is_known ? PAIR_MEMORY : 0);
		pair_destroy(&p);
	}
	watch(NULL);
}

static void refusal_watch__ends(void **state)
{
	const struct request request = { IBV_WR_RDMA_READ, 0, 8, 1 };
	struct pair p;

	watch(refused);
	watch(NULL);
	pair_make(&p, *state, NULL);
	atomic_store(&calls, 0);
	assert_int_equal(try(&p, &request), IBV_WC_REM_ACCESS_ERR);
	event_await(*state, p.b.qp, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(atomic_load(&calls), 0);
	pair_destroy(&p);
}

/* What a granted request and an end without an error tell: nothing. */
static void refusal_watch__granted(void **state)
{
	const struct request request = { IBV_WR_RDMA_READ, 0, 8, 0 };
	struct pair p;

	watch(refused);
	pair_make(&p, *state, NULL);
	atomic_store(&calls, 0);
	assert_int_equal(try(&p, &request), IBV_WC_SUCCESS);
	pair_destroy(&p);
	assert_int_equal(atomic_load(&calls), 0);
	watch(NULL);
}

/* What the library writes to standard error during the request, at the default level. */
static void log_of(struct fixture *f, struct pair *p, const struct request *request, char *text,
		   size_t size)
{
	const int kept = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	assert_true(kept >= 0);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	try(p, request);
	event_await(f, p->b.qp, IBV_EVENT_QP_ACCESS_ERR);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	rewind(file);
	len = fread(text, 1, size - 1, file);
	text[len] = '\0';
	fclose(file);
}

static void refusal_log__byte_order(void **state)
{
	struct request request = { IBV_WR_RDMA_READ, 0, 8, 0 };
	char text[2048], wanted[256];
	struct pair p;

	pair_make(&p, *state, NULL);
	request.rkey_change = p.b.mr->rkey ^ bswap_32(p.b.mr->rkey);
	log_of(*state, &p, &request, text, sizeof(text));
	snprintf(
		wanted, sizeof(wanted),
		"qp 0x%x refused the peer's read stag 0x%x to 0x%lx length 8 cause no mr has this stag, but one has "
		"0x%x: its bytes are in the other order\n",
		p.b.qp->qp_num, bswap_32(p.b.mr->rkey), (unsigned long)(uintptr_t)p.b.memory,
		p.b.mr->rkey);
	assert_non_null(strstr(text, wanted));
	pair_destroy(&p);
}

static void refusal_log__end_of_mr(void **state)
{
	const struct request request = { IBV_WR_RDMA_WRITE, PAIR_MEMORY - 4, 8, 0 };
	char text[2048], wanted[256];
	struct pair p;

	pair_make(&p, *state, NULL);
	log_of(*state, &p, &request, text, sizeof(text));
	snprintf(wanted, sizeof(wanted),
		 "length 8 cause the mr or window begins at 0x%lx and ends at 0x%lx\n",
		 (unsigned long)(uintptr_t)p.b.memory,
		 (unsigned long)(uintptr_t)p.b.memory + PAIR_MEMORY);
	assert_non_null(strstr(text, wanted));
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(refusal_watch__each_request), WITH(refusal_watch__ends),
		WITH(refusal_watch__granted),	   WITH(refusal_log__byte_order),
		WITH(refusal_log__end_of_mr),
	};

	unsetenv("ANYWARP_LOG");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
