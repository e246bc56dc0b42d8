// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/array.h"
#include "check/faults/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CALL_BYTES 100

static struct aw_fault_plan plan;
static struct aw_fault_count counts[AW_FAULTS_MAX];
static struct aw_fault_stream stream;

static void begin(const char *text)
{
	struct aw_fault_problem problem;

	if (!aw_fault_plan_parse(text, &plan, &problem))
		fail_msg("'%s': %s", text, problem.why);
	memset(counts, 0, sizeof(counts));
	aw_fault_stream_begin(&plan, counts, 1, &stream);
}

/* Each call would move 100 bytes; call i is at i ms. One word for each: the bytes that it moves, and what it does instead. */
static void walk(enum aw_wire_direction direction, int calls, char *text, size_t size)
{
	static const char *const words[] = { "", "reset", "fin",  "silence",
					     "", "slow",  "stop", "kill" };
	size_t len = 0;

	*text = '\0';
	for (int i = 0; i < calls; i++) {
		uint64_t now = (uint64_t)i * 1000000;
		struct aw_wire_step step =
			aw_fault_stream_next(&plan, &stream, direction, CALL_BYTES, now);

		if (step.what == AW_WIRE_PASS)
			len += (size_t)snprintf(text + len, size - len, "%zu ", step.len);
		else if (step.what == AW_WIRE_FLIP)
			len += (size_t)snprintf(text + len, size - len, "%zu^%zu ", step.len,
						step.at);
		else
			len += (size_t)snprintf(text + len, size - len, "%s%s ", words[step.what],
						step.is_first ? "!" : "");
		if (step.what == AW_WIRE_PASS || step.what == AW_WIRE_FLIP)
			aw_fault_stream_moved(&stream, direction, &step, step.len);
	}
}

static void next__in_the_direction_and_place(void **state)
{
	static const struct {
		const char *plan, *sent;
	} rows[] = {
		{ "wire:reset", "reset! reset reset reset " },
		{ "wire:reset:byte=100", "100 reset! reset reset " },
		{ "wire:reset:byte=150", "100 50 reset! reset " },
		{ "wire:reset:recv:byte=150", "100 100 100 100 " },
		{ "wire:fin:after=2ms", "100 100 fin! fin " },
		{ "wire:silence:byte=1", "1 silence! silence silence " },
		{ "wire:silence:byte=1:after=2ms", "100 100 silence! silence " },
		{ "wire:flip:byte=0", "100^0 100 100 100 " },
		{ "wire:flip:byte=150", "100 100^50 100 100 " },
		{ "wire:flip:byte=100", "100 100^0 100 100 " },
		{ "wire:flip:byte=50:after=2ms", "100 100 100^0 100 " },
		{ "wire:flip:byte=120,wire:flip:byte=130", "100 30^20 100^0 100 " },
		{ "wire:flip:byte=130,wire:flip:byte=120", "100 30^20 100^0 100 " },
		{ "wire:flip:byte=150,wire:reset:byte=130", "100 30 reset! reset " },
		{ "wire:slow:byte=100:rate=1MB/s", "100 slow! 100 100 " },
		{ "self:stop:byte=100", "100 stop! 100 100 " },
		{ "self:kill:byte=250", "100 100 50 kill! " },
		{ "ibv_reg_mr,qp:error", "100 100 100 100 " },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(rows[i].plan);
		walk(AW_WIRE_SEND, 4, text, sizeof(text));
		if (strcmp(text, rows[i].sent) != 0)
			fail_msg("%s: %s", rows[i].plan, text);
	}
	begin("wire:reset:recv:byte=150");
	walk(AW_WIRE_RECV, 4, text, sizeof(text));
	assert_string_equal(text, "100 50 reset! reset ");
}

/* A call that moves nothing, for a full socket, leaves a fault to come. */
static void moved__nothing(void **state)
{
	struct aw_wire_step step;

	(void)state;
	begin("wire:flip:byte=10");
	step = aw_fault_stream_next(&plan, &stream, AW_WIRE_SEND, 100, 0);
	aw_fault_stream_moved(&stream, AW_WIRE_SEND, &step, 0);
	step = aw_fault_stream_next(&plan, &stream, AW_WIRE_SEND, 100, 0);
	assert_int_equal(step.what, AW_WIRE_FLIP);
	aw_fault_stream_moved(&stream, AW_WIRE_SEND, &step, 10);
	step = aw_fault_stream_next(&plan, &stream, AW_WIRE_SEND, 100, 0);
	assert_int_equal(step.what, AW_WIRE_FLIP);
	assert_int_equal(step.at, 0);
}

/* A call of no bytes asks for what is due before any more are moved. */
static void next__of_no_bytes(void **state)
{
	struct aw_wire_step step;

	(void)state;
	begin("wire:flip:byte=100,wire:fin:byte=100");
	step = aw_fault_stream_next(&plan, &stream, AW_WIRE_SEND, 0, 0);
	assert_int_equal(step.what, AW_WIRE_PASS);
	aw_fault_stream_moved(&stream, AW_WIRE_SEND, &step, 100);
	step = aw_fault_stream_next(&plan, &stream, AW_WIRE_SEND, 0, 0);
	assert_int_equal(step.what, AW_WIRE_FIN);
}

static void begin__counts_connections(void **state)
{
	(void)state;
	begin("wire:reset:nth=2,wire:fin,self:stop:byte=1");
	assert_int_equal(stream.armed, 1u << 1 | 1u << 2);
	aw_fault_stream_begin(&plan, counts, 1, &stream);
	assert_int_equal(stream.armed, 1u << 0 | 1u << 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next__in_the_direction_and_place),
		cmocka_unit_test(moved__nothing),
		cmocka_unit_test(next__of_no_bytes),
		cmocka_unit_test(begin__counts_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
