// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The marks of work requests' sinks: which bytes a tool takes as undefined, from the post until a completion, or without one.
#include "check/base/marks.h"
#include "check/model/queue.h"
#include "check/model/verbs.h"

#include "check_reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
	LKEY = 7,
	LEN = 64,
};

static struct ibv_context context;
static char memory[LEN];
static char marks
	[LEN +
	 1]; /* of each byte: '.' none, 'u' undefined, 'd' defined, 'k' as what was kept of it */
static int hushed;
static struct ibv_mr mr = { .context = &context, .addr = memory, .length = LEN, .lkey = LKEY };
static const struct aw_object owner = { .kind = AW_KIND_QP, .context = &context, .number = 0x12 };

static void mark(const void *at, size_t len, char by)
{
	const size_t offset = (uintptr_t)at - (uintptr_t)memory;

	if (offset > LEN)
		return; /* a value that was computed from it */
	assert_in_range(len, 0, LEN - offset);
	memset(marks + offset, by, len);
}

void aw_mark_undefined(void *at, size_t len)
{
	mark(at, len, 'u');
}

void aw_mark_defined(void *at, size_t len)
{
	mark(at, len, 'd');
}

void aw_mark_defined_like(void *at, const void *kept, size_t len)
{
	assert_memory_equal(at, kept, len);
	mark(at, len, 'k');
}

void aw_mark_given(void *at, size_t len)
{
	(void)at;
	(void)len;
}

void aw_marks_hush(void)
{
	hushed++;
}

void aw_marks_unhush(void)
{
	hushed--;
}

static int setup(void **state)
{
	(void)state;
	aw_mr_shadow_add(&mr, (uintptr_t)memory, IBV_ACCESS_LOCAL_WRITE, true);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(memory, 1, LEN);
	memset(marks, '.', LEN);
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(hushed, 0);
	assert_int_equal(report_only(), AW_RULES);
	return 0;
}

/* The WR of so many bytes from there on; posted_as is the queue. */
static void push(struct aw_wr_queue *queue, struct aw_wr_posted posted, size_t at, uint32_t len)
{
	const struct ibv_sge sge = { .addr = (uintptr_t)memory + at, .length = len, .lkey = LKEY };

	posted.owner = &owner;
	posted.posted_as = queue;
	posted.sges = &sge;
	posted.sge_count = 1;
	aw_queue_push(queue, &posted);
}

static const struct aw_wr_posted a_receive = { .wr_id = 1, .is_recv = true, .is_signaled = true };
static const struct aw_wr_posted a_read = { .wr_id = 2,
					    .opcode = IBV_WR_RDMA_READ,
					    .is_signaled = true };
static const struct aw_wr_posted a_silent_read = { .wr_id = 3, .opcode = IBV_WR_RDMA_READ };
static const struct aw_wr_posted a_send = { .wr_id = 4,
					    .opcode = IBV_WR_SEND,
					    .is_signaled = true };

static void complete(struct aw_wr_queue *queue, uint64_t wr_id, enum ibv_wc_status status,
		     enum ibv_wc_opcode opcode, uint32_t byte_len)
{
	const struct ibv_wc wc = {
		.wr_id = wr_id, .status = status, .byte_len = byte_len, .opcode = opcode
	};

	assert_true(aw_queue_complete(queue, &wc, true));
}

static void assert_marks(struct aw_wr_queue *queue, const char *expected)
{
	assert_string_equal(marks, expected);
	aw_queue_clear(queue);
	aw_queue_fini(queue);
}

#define NONE_16 "................"
#define NONE_48 NONE_16 NONE_16 NONE_16

static void receive__is_undefined_from_its_post_on(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	assert_marks(&queue, "....uuuuuuuuuuuu" NONE_48);
}

static void receive__has_what_arrived_and_what_was_there(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	complete(&queue, 1, IBV_WC_SUCCESS, IBV_WC_RECV, 5);
	assert_marks(&queue, "....dddddkkkkkkk" NONE_48);
}

static void receive__that_a_write_with_immediate_took_has_what_was_there(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	complete(&queue, 1, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 5);
	assert_marks(&queue, "....kkkkkkkkkkkk" NONE_48);
}

static void receive__that_failed_stays_undefined(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	complete(&queue, 1, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 5);
	assert_marks(&queue, "....uuuuuuuuuuuu" NONE_48);
}

static void receive__that_was_not_accepted_has_what_was_there(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	aw_queue_unpush(&queue, &queue);
	assert_int_equal(queue.count, 0);
	assert_marks(&queue, "....kkkkkkkkkkkk" NONE_48);
}

static void receive__of_a_destroyed_qp_has_what_was_there(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	aw_queue_clear(&queue);
	assert_marks(&queue, "....kkkkkkkkkkkk" NONE_48);
}

static void receive__whose_mr_goes_has_what_was_there(void **state)
{
	const struct aw_memory all = { .start = (uintptr_t)memory, .end = (uintptr_t)memory + LEN };
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	aw_memory_given_up(AW_RULE_MR_DEREGISTERED, "", "deregistered", &all);
	assert_int_equal(report_only(), AW_RULE_MR_DEREGISTERED);
	assert_marks(&queue, "....kkkkkkkkkkkk" NONE_48);
}

static void receive__of_bytes_that_another_one_has_is_not_marked(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_receive, 4, 12);
	push(&queue, a_receive, 8, 16);
	assert_int_equal(report_only(), AW_RULE_OVERLAP);
	assert_marks(&queue, "....uuuuuuuuuuuu" NONE_48);
}

static void read__is_defined_whole_by_a_later_completion(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_silent_read, 0, 8);
	push(&queue, a_read, 8, 4);
	assert_string_equal(marks, "uuuuuuuuuuuu...." NONE_48);
	complete(&queue, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_READ, 4);
	assert_marks(&queue, "dddddddddddd...." NONE_48);
}

static void read__before_one_that_failed_is_not_the_one_that_did(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_silent_read, 0, 8);
	push(&queue, a_read, 8, 4);
	complete(&queue, 2, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_READ, 0);
	assert_marks(&queue, "dddddddduuuu...." NONE_48);
}

static void send__is_not_marked(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	push(&queue, a_send, 0, 8);
	complete(&queue, 4, IBV_WC_SUCCESS, IBV_WC_SEND, 8);
	assert_marks(&queue, NONE_16 NONE_48);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(receive__is_undefined_from_its_post_on),
		TEST(receive__has_what_arrived_and_what_was_there),
		TEST(receive__that_a_write_with_immediate_took_has_what_was_there),
		TEST(receive__that_failed_stays_undefined),
		TEST(receive__that_was_not_accepted_has_what_was_there),
		TEST(receive__of_a_destroyed_qp_has_what_was_there),
		TEST(receive__whose_mr_goes_has_what_was_there),
		TEST(receive__of_bytes_that_another_one_has_is_not_marked),
		TEST(read__is_defined_whole_by_a_later_completion),
		TEST(read__before_one_that_failed_is_not_the_one_that_did),
		TEST(send__is_not_marked),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
