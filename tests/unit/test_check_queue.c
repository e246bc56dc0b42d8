// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work requests under way: which ones a completion takes out, and what is told of their memory.
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
	LEN = 256,
};

static struct ibv_context context;
static char memory[LEN];
static struct ibv_mr mr = { .context = &context, .addr = memory, .length = LEN, .lkey = LKEY };
static const struct aw_object owner = { .kind = AW_KIND_QP, .context = &context, .number = 0x12 };

static int setup(void **state)
{
	(void)state;
	memset(memory, 1, LEN);
	aw_mr_shadow_add(&mr, (uintptr_t)memory, IBV_ACCESS_LOCAL_WRITE, true);
	return 0;
}

static struct ibv_sge sge_of(size_t at, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)memory + at, .length = len, .lkey = LKEY };
}

static void send_push(struct aw_wr_queue *queue, uint64_t wr_id, bool is_signaled,
		      const struct ibv_sge *sge)
{
	aw_queue_push(queue, &(struct aw_wr_posted){ .owner = &owner,
						     .posted_as = queue,
						     .wr_id = wr_id,
						     .opcode = IBV_WR_SEND,
						     .is_signaled = is_signaled,
						     .sges = sge,
						     .sge_count = sge ? 1 : 0 });
}

static void recv_push(struct aw_wr_queue *queue, uint64_t wr_id, const struct ibv_sge *sge)
{
	aw_queue_push(queue, &(struct aw_wr_posted){ .owner = &owner,
						     .posted_as = queue,
						     .wr_id = wr_id,
						     .is_recv = true,
						     .is_signaled = true,
						     .sges = sge,
						     .sge_count = 1 });
}

static bool complete(struct aw_wr_queue *queue, uint64_t wr_id, enum ibv_wc_status status,
		     uint32_t byte_len)
{
	const struct ibv_wc wc = {
		.wr_id = wr_id, .status = status, .byte_len = byte_len, .opcode = IBV_WC_RECV
	};

	return aw_queue_complete(queue, &wc, true);
}

static void end(struct aw_wr_queue *queue)
{
	aw_queue_clear(queue);
	aw_queue_fini(queue);
	assert_int_equal(report_only(), AW_RULES);
	assert_false(aw_memory_is_used());
}

static void complete__a_signaled_send_ends_the_unsignaled_before_it(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		send_push(&queue, i, i % 10 == 9, NULL);
	assert_int_equal(queue.signaled, 10);
	assert_false(complete(&queue, 3, IBV_WC_SUCCESS, 0)); /* it makes none */
	assert_true(complete(&queue, 19, IBV_WC_SUCCESS, 0));
	assert_int_equal(queue.count, 80);
	assert_int_equal(queue.signaled, 8);
	end(&queue);
}

static void complete__an_error_may_be_of_an_unsignaled_send(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	send_push(&queue, 1, false, NULL);
	send_push(&queue, 2, true, NULL);
	assert_true(complete(&queue, 1, IBV_WC_REM_ACCESS_ERR, 0));
	assert_int_equal(queue.count, 1);
	end(&queue);
}

static void complete__equal_ids_end_in_order(void **state)
{
	struct aw_wr_queue queue = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++)
		send_push(&queue, 5, true, NULL);
	for (unsigned left = 40; left > 0; left--) {
		assert_int_equal(queue.count, left);
		assert_true(complete(&queue, 5, IBV_WC_SUCCESS, 0));
	}
	assert_false(complete(&queue, 5, IBV_WC_SUCCESS, 0));
	end(&queue);
}

static void complete__of_an_srq_in_any_order(void **state)
{
	const struct ibv_wc second = { .wr_id = 2, .opcode = IBV_WC_RECV },
			    first = { .wr_id = 1, .opcode = IBV_WC_RECV };
	const struct ibv_sge one = sge_of(0, 8), two = sge_of(8, 8);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	recv_push(&queue, 1, &one);
	recv_push(&queue, 2, &two);
	assert_true(aw_queue_complete(&queue, &second, false));
	assert_false(aw_queue_complete(&queue, &second, false));
	assert_int_equal(queue.count, 2);
	assert_true(aw_queue_complete(&queue, &first, false));
	assert_int_equal(queue.count, 0);
	end(&queue);
}

static void unpush__takes_out_what_was_not_accepted(void **state)
{
	struct aw_wr_queue queue = { 0 };
	struct ibv_send_wr wrs[3];

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		aw_queue_push(&queue, &(struct aw_wr_posted){
					      .owner = &owner, .posted_as = &wrs[i], .wr_id = i });
	aw_queue_unpush(&queue, &wrs[1]);
	assert_int_equal(queue.count, 1);
	assert_non_null(aw_queue_find(&queue, 0, true));
	aw_queue_unpush(&queue, &wrs[2]); /* which is in it no more */
	assert_int_equal(queue.count, 1);
	end(&queue);
}

static void source__a_change_is_told(void **state)
{
	const struct ibv_sge sge = sge_of(16, 100);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	send_push(&queue, 1, true, &sge);
	complete(&queue, 1, IBV_WC_SUCCESS, 0);
	assert_int_equal(report_only(), AW_RULES);
	send_push(&queue, 1, true, &sge);
	memory[115]++;
	complete(&queue, 1, IBV_WC_SUCCESS, 0);
	assert_int_equal(report_only(), AW_RULE_SOURCE_CHANGED);
	send_push(&queue, 1, true, &sge);
	memory[116]++; /* behind it */
	complete(&queue, 1, IBV_WC_SUCCESS, 0);
	end(&queue);
}

static void sink__of_a_receive_is_left_alone(void **state)
{
	const struct ibv_sge sge = sge_of(0, 64);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	memset(memory, 3, LEN);
	recv_push(&queue, 1, &sge);
	for (int i = 0; i < 64; i++)
		assert_int_equal(memory[i], 3);
	memset(memory, 9, 10); /* the message */
	complete(&queue, 1, IBV_WC_SUCCESS, 10);
	assert_int_equal(report_only(), AW_RULES);
	assert_int_equal(memory[9], 9);
	for (int i = 10; i < 64; i++)
		assert_int_equal(memory[i], 3);
	end(&queue);
}

static void sink__a_write_beyond_the_message_is_told_and_stays(void **state)
{
	const struct ibv_sge sge = sge_of(0, 64);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	memset(memory, 3, LEN);
	recv_push(&queue, 1, &sge);
	memset(memory, 9, 10);
	memory[40] = 5;
	complete(&queue, 1, IBV_WC_SUCCESS, 10);
	assert_int_equal(report_only(), AW_RULE_SINK_WRITTEN);
	assert_int_equal(memory[40], 5);
	assert_int_equal(memory[41], 3);
	end(&queue);
}

static void sink__of_a_flushed_receive_is_not_judged(void **state)
{
	const struct ibv_sge sge = sge_of(0, 64);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	memset(memory, 3, LEN);
	recv_push(&queue, 1, &sge);
	memory[5] = 9;
	complete(&queue, 1, IBV_WC_WR_FLUSH_ERR, 0xd7d7);
	assert_int_equal(report_only(), AW_RULES);
	assert_int_equal(memory[5], 9);
	end(&queue);
}

static void source__of_an_answered_unsignaled_send_is_not_judged(void **state)
{
	const struct ibv_sge sge = sge_of(0, 64), other = sge_of(64, 64);
	struct aw_wr_queue queue = { 0 };

	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		send_push(&queue, 1, false, &sge);
		if (answered)
			aw_queue_answered(&queue, 0);
		memory[0]++;
		send_push(&queue, 2, true, &other);
		complete(&queue, 2, IBV_WC_SUCCESS, 0);
		assert_int_equal(report_only(), answered ? AW_RULES : AW_RULE_SOURCE_CHANGED);
	}
	end(&queue);
}

static void overlap__two_sources_may_two_sinks_may_not(void **state)
{
	const struct ibv_sge one = sge_of(0, 64), two = sge_of(63, 10), three = sge_of(73, 10);
	struct aw_wr_queue sends = { 0 }, recvs = { 0 };

	(void)state;
	send_push(&sends, 1, true, &one);
	send_push(&sends, 2, true, &two);
	assert_int_equal(report_only(), AW_RULES);
	recv_push(&recvs, 3, &three);
	assert_int_equal(report_only(), AW_RULES);
	recv_push(&recvs, 4, &two);
	assert_int_equal(report_only(), AW_RULE_OVERLAP);
	aw_queue_clear(&sends);
	aw_queue_clear(&recvs);
	aw_queue_fini(&sends);
	end(&recvs);
}

static void given_up__is_told_once_and_looked_at_no_more(void **state)
{
	const struct ibv_sge sge = sge_of(0, 64);
	const struct aw_memory around = { .start = (uintptr_t)memory,
					  .end = (uintptr_t)memory + 1 };
	const struct aw_memory behind = { .start = (uintptr_t)memory + 64,
					  .end = (uintptr_t)memory + 65 };
	const uint32_t other = LKEY + 1;
	const struct aw_memory by_other = { .start = around.start,
					    .end = around.end,
					    .lkey = &other };
	struct aw_wr_queue queue = { 0 };

	(void)state;
	send_push(&queue, 1, true, &sge);
	aw_memory_given_up(AW_RULE_MEMORY_FREED, "", "freed", &behind);
	aw_memory_given_up(AW_RULE_MR_DEREGISTERED, "", "deregistered", &by_other);
	assert_int_equal(report_only(), AW_RULES);
	aw_memory_given_up(AW_RULE_MEMORY_FREED, "", "freed", &around);
	assert_int_equal(report_only(), AW_RULE_MEMORY_FREED);
	aw_memory_given_up(AW_RULE_MEMORY_FREED, "", "freed", &around);
	memory[0]++;
	complete(&queue, 1, IBV_WC_SUCCESS, 0);
	end(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete__a_signaled_send_ends_the_unsignaled_before_it),
		cmocka_unit_test(complete__an_error_may_be_of_an_unsignaled_send),
		cmocka_unit_test(complete__equal_ids_end_in_order),
		cmocka_unit_test(complete__of_an_srq_in_any_order),
		cmocka_unit_test(unpush__takes_out_what_was_not_accepted),
		cmocka_unit_test(source__a_change_is_told),
		cmocka_unit_test(sink__of_a_receive_is_left_alone),
		cmocka_unit_test(sink__a_write_beyond_the_message_is_told_and_stays),
		cmocka_unit_test(sink__of_a_flushed_receive_is_not_judged),
		cmocka_unit_test(source__of_an_answered_unsignaled_send_is_not_judged),
		cmocka_unit_test(overlap__two_sources_may_two_sinks_may_not),
		cmocka_unit_test(given_up__is_told_once_and_looked_at_no_more),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
