// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/array.h"
#include "check/faults/plan.h"
#include "check/faults/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct aw_fault_plan plan;
static struct aw_fault_problem problem;

static const struct aw_fault *parse_one(const char *text)
{
	if (!aw_fault_plan_parse(text, &plan, &problem))
		fail_msg("'%s': %s", text, problem.why);
	assert_int_equal(plan.count, 1);
	return &plan.faults[0];
}

static void parse__a_plan_without_faults(void **state)
{
	static const char *const texts[] = { NULL, "", "  \n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_true(aw_fault_plan_parse(texts[i], &plan, &problem));
		assert_int_equal(plan.count, 0);
	}
}

static void parse__when(void **state)
{
	static const struct {
		const char *text;
		struct aw_fault_when when;
	} rows[] = {
		{ "ibv_reg_mr", { 0 } },
		{ "ibv_reg_mr:nth=3", { .nth = 3 } },
		{ "ibv_reg_mr:from=3:times=2", { .from = 3, .times = 2 } },
		{ "ibv_reg_mr:every=10", { .every = 10 } },
		{ "ibv_reg_mr:prob=0.01", { .probability = AW_FAULT_CERTAIN / 100 } },
		{ "ibv_reg_mr:prob=1%", { .probability = AW_FAULT_CERTAIN / 100 } },
		{ "ibv_reg_mr:prob=1", { .probability = AW_FAULT_CERTAIN } },
		{ "ibv_reg_mr:after=250ms", { .after_ns = 250000000 } },
		{ "ibv_reg_mr:after=2", { .after_ns = 2000000000 } },
		{ "ibv_reg_mr:after=1.5s", { .after_ns = 1500000000 } },
		{ "ibv_reg_mr:after=1min", { .after_ns = 60000000000 } },
		{ "qp:error", { .times = 1 } },
		{ "qp:error:nth=7", { .nth = 7, .times = 1 } },
		{ "cq:overrun:every=7", { .every = 7 } },
		{ "async:PORT_ERR:after=1s", { .after_ns = 1000000000, .times = 1 } },
		{ "wire:reset:nth=2", { .nth = 2 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_memory_equal(&parse_one(rows[i].text)->when, &rows[i].when,
				    sizeof(rows[i].when));
}

static void parse__a_call(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t delay_ns;
		unsigned wr;
	} rows[] = {
		{ "ibv_reg_mr", ENOMEM, 0, 0 },
		{ "ibv_reg_mr:error=EAGAIN", EAGAIN, 0, 0 },
		{ "ibv_dereg_mr", EBUSY, 0, 0 },
		{ "ibv_create_*", ENOMEM, 0, 0 },
		{ "rdma_connect:error=etimedout", ETIMEDOUT, 0, 0 },
		{ "ibv_post_send:nth=5:wr=2:error=ENOMEM", ENOMEM, 0, 2 },
		{ "ibv_reg_mr:delay=1ms", 0, 1000000, 0 },
		{ "ibv_reg_mr:delay=1ms:error=EIO", EIO, 1000000, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct aw_fault *fault = parse_one(rows[i].text);

		assert_int_equal(fault->kind, AW_FAULT_CALL);
		assert_int_equal(fault->err, rows[i].err);
		assert_int_equal(fault->delay_ns, rows[i].delay_ns);
		assert_int_equal(fault->wr, rows[i].wr);
	}
}

static void parse__a_completion(void **state)
{
	const struct aw_fault *fault = parse_one("completion:op=write:nth=4:status=RETRY_EXC_ERR");

	(void)state;
	assert_int_equal(fault->kind, AW_FAULT_COMPLETION);
	assert_int_equal(fault->status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(parse_one("completion")->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(parse_one("completion:status=ibv_wc_loc_prot_err")->status,
			 IBV_WC_LOC_PROT_ERR);
}

static void parse__an_event(void **state)
{
	const struct aw_fault *fault = parse_one("cm:ADDR_ERROR");

	(void)state;
	assert_int_equal(fault->event, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(fault->err, -EHOSTUNREACH);
	assert_int_equal(parse_one("cm:ADDR_ERROR:error=ENODEV")->err, -ENODEV);
	assert_int_equal(parse_one("cm:REJECTED:reason=28")->err, 28);
	assert_int_equal(parse_one("cm:ESTABLISHED:delay=500ms")->kind, AW_FAULT_CM_LATE);
	assert_int_equal(parse_one("async:ibv_event_gid_change")->async, IBV_EVENT_GID_CHANGE);
}

static void parse__the_wire(void **state)
{
	static const struct {
		const char *text;
		enum aw_wire_what what;
		enum aw_wire_direction direction;
		uint64_t byte, rate;
	} rows[] = {
		{ "wire:reset:byte=100000", AW_WIRE_RESET, AW_WIRE_SEND, 100000, 0 },
		{ "wire:fin", AW_WIRE_FIN, AW_WIRE_SEND, 0, 0 },
		{ "wire:silence:recv", AW_WIRE_SILENCE, AW_WIRE_RECV, 0, 0 },
		{ "wire:flip:recv:byte=64KiB", AW_WIRE_FLIP, AW_WIRE_RECV, 65536, 0 },
		{ "wire:slow:rate=10MB/s", AW_WIRE_SLOW, AW_WIRE_SEND, 0, 10000000 },
		{ "wire:slow:rate=100Mbit/s", AW_WIRE_SLOW, AW_WIRE_SEND, 0, 12500000 },
		{ "self:stop:byte=1MB", AW_WIRE_STOP, AW_WIRE_SEND, 1000000, 0 },
		{ "self:kill:at=ibv_post_send:nth=3", AW_WIRE_KILL, AW_WIRE_SEND, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct aw_fault *fault = parse_one(rows[i].text);

		assert_int_equal(fault->what, rows[i].what);
		assert_int_equal(fault->direction, rows[i].direction);
		assert_int_equal(fault->byte, rows[i].byte);
		assert_int_equal(fault->rate, rows[i].rate);
	}
	assert_true(aw_fault_plan_parse("ibv_reg_mr,self:stop:byte=1", &plan, &problem));
	assert_true(aw_fault_plan_needs_wire(&plan));
	assert_true(aw_fault_plan_parse("ibv_reg_mr,self:stop:after=1", &plan, &problem));
	assert_false(aw_fault_plan_needs_wire(&plan));
}

/* Each: the text, the part that the carets are below, and words of the remedy. */
static void parse__a_wrong_text(void **state)
{
	static const struct {
		const char *text, *part, *words;
	} rows[] = {
		{ "ibv_reg_mrr", "ibv_reg_mrr", "ibv_reg_mr is one" },
		{ "reg_mr:nth=1", "reg_mr", "ibv_reg_mr is one" },
		{ "zzzzzzzzzzzz", "zzzzzzzzzzzz", "a place is a function" },
		{ "ibv_reg_mr,", "", "remove a comma" },
		{ "ibv_reg_mr:", "", "two colons" },
		{ "ibv_reg_mr:nht=3", "nht", "nth is meant" },
		{ "ibv_reg_mr:nth", "nth", "nth=VALUE" },
		{ "ibv_reg_mr:nth=0", "0", "from 1 on" },
		{ "ibv_reg_mr:nth=-1", "-1", "from 1 on" },
		{ "ibv_reg_mr:nth=1:nth=2", "nth=2", "twice" },
		{ "ibv_reg_mr:nth=1:every=2", "every=2", "write one of them" },
		{ "ibv_reg_mr:wr=2", "wr", "this fault takes nth" },
		{ "ibv_reg_mr:error=ENOMEN", "ENOMEN", "ENOMEM is one" },
		{ "ibv_reg_mr:prob=2", "2", "at most 1" },
		{ "ibv_reg_mr:prob=0", "0", "at most 1" },
		{ "ibv_reg_mr:after=2h", "2h", "as in 250ms" },
		{ "completion:op=send:status=REM_ACCESS_ERR", "status=REM_ACCESS_ERR",
		  "RNR_RETRY_EXC_ERR" },
		{ "completion:status=LOC_EEC_OP_ERR", "status=LOC_EEC_OP_ERR", "no QP of type" },
		{ "completion:status=RETRY_EXC", "RETRY_EXC", "RETRY_EXC_ERR is one" },
		{ "completion:op=wirte", "wirte", "write is one" },
		{ "qp", "qp", "needs a word" },
		{ "qp:eror", "eror", "write qp:error" },
		{ "async:QP_FATAL", "QP_FATAL", "qp:error and cq:overrun" },
		{ "async:PORT_ERROR", "PORT_ERROR", "PORT_ERR is one" },
		{ "async:PORT_ERR:nth=2", "nth", "after" },
		{ "cm:ADDR_EROR", "ADDR_EROR", "ADDR_ERROR is one" },
		{ "cm:ESTABLISHED", "cm:ESTABLISHED", "delay=500ms" },
		{ "cm:REJECTED:error=EIO:reason=1", "reason=1", "write one of them" },
		{ "wire:rst", "rst", "reset is one" },
		{ "wire:slow", "wire:slow", "rate=10MB/s" },
		{ "wire:slow:recv:rate=1MB/s", "recv", "run the peer" },
		{ "wire:flip:byte=x", "x", "4096" },
		{ "self:stop:recv", "recv", "byte=1MB" },
		{ "self:kill:at=ibv_post_sned", "ibv_post_sned", "ibv_post_send is one" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (aw_fault_plan_parse(rows[i].text, &plan, &problem))
			fail_msg("'%s' is taken", rows[i].text);
		if (problem.len != strlen(rows[i].part) ||
		    strncmp(rows[i].text + problem.at, rows[i].part, problem.len) != 0)
			fail_msg("'%s': part '%.*s'", rows[i].text, (int)problem.len,
				 rows[i].text + problem.at);
		if (!strstr(problem.why, rows[i].words))
			fail_msg("'%s': %s", rows[i].text, problem.why);
	}
}

static void parse__several_faults_with_blanks(void **state)
{
	(void)state;
	assert_true(aw_fault_plan_parse(" ibv_reg_mr:nth=1 ,\n\tcompletion", &plan, &problem));
	assert_int_equal(plan.count, 2);
	assert_int_equal(plan.faults[1].kind, AW_FAULT_COMPLETION);
}

/* As many faults as there is room for, and one more. */
static void parse__the_bounds(void **state)
{
	char text[AW_FAULTS_TEXT_MAX + 1] = "";

	(void)state;
	for (int i = 0; i < AW_FAULTS_MAX; i++)
		strcat(text, i ? ",qp:error" : "qp:error");
	assert_true(aw_fault_plan_parse(text, &plan, &problem));
	assert_int_equal(plan.count, AW_FAULTS_MAX);
	strcat(text, ",qp:error");
	assert_false(aw_fault_plan_parse(text, &plan, &problem));
	memset(text, ' ', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(aw_fault_plan_parse(text, &plan, &problem));
	text[sizeof(text) - 2] = '\0';
	assert_true(aw_fault_plan_parse(text, &plan, &problem));
}

static void show__carets(void **state)
{
	char lines[2 * AW_FAULTS_SHOWN_MAX + 4];
	char text[400] = "";

	(void)state;
	assert_false(aw_fault_plan_parse("completion,ibv_reg_mr:nht=3", &plan, &problem));
	aw_fault_problem_show("completion,ibv_reg_mr:nht=3", &problem, lines);
	assert_string_equal(lines, "completion,ibv_reg_mr:nht=3\n"
				   "                      ^^^");
	for (int i = 0; i < 20; i++)
		strcat(text, "ibv_reg_mr:nth=3,");
	strcat(text, "ibv_reg_mr:nht=3");
	assert_false(aw_fault_plan_parse(text, &plan, &problem));
	aw_fault_problem_show(text, &problem, lines);
	assert_string_equal(lines, ":nth=3,ibv_reg_mr:nht=3\n"
				   "                  ^^^");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__a_plan_without_faults),
		cmocka_unit_test(parse__when),
		cmocka_unit_test(parse__a_call),
		cmocka_unit_test(parse__a_completion),
		cmocka_unit_test(parse__an_event),
		cmocka_unit_test(parse__the_wire),
		cmocka_unit_test(parse__a_wrong_text),
		cmocka_unit_test(parse__several_faults_with_blanks),
		cmocka_unit_test(parse__the_bounds),
		cmocka_unit_test(show__carets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
