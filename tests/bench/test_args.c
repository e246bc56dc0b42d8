// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/args.h"

#include <string.h>

static const struct args_rules rules = {
	.modes = { [TEST_LATENCY] = 1u << MODE_SPIN | 1u << MODE_EVENT,
		   [TEST_BANDWIDTH] = 1u << MODE_SPIN,
		   [TEST_HOTSPOT] = 1u << MODE_SPIN },
	.mode_default = { MODE_SPIN, MODE_SPIN, MODE_SPIN, MODE_SPIN, MODE_SPIN },
	.has_window = true,
};

static struct args read_good(const char *line)
{
	char why[ARGS_TEXT_MAX] = "";
	struct args args;

	if (!args_read_line(&args, &rules, line, why))
		fail_msg("'%s' was refused: %s", line, why);
	return args;
}

static void assert_refused(const char *line, const char *part)
{
	char why[ARGS_TEXT_MAX] = "";
	struct args args;

	if (args_read_line(&args, &rules, line, why))
		fail_msg("'%s' was taken", line);
	if (!strstr(why, part))
		fail_msg("'%s': '%s' does not say '%s'", line, why, part);
}

static void args_read__every_key(void **state)
{
	struct args args = read_good("bandwidth op=write size=16777216 window=128 direction=bi "
				     "batch=128 streams=64 threads=2 seconds=0.25");

	(void)state;
	assert_int_equal(args.test, TEST_BANDWIDTH);
	assert_int_equal(args.op, OP_WRITE);
	assert_int_equal(args.size, 16777216);
	assert_int_equal(args.window, 128);
	assert_int_equal(args.direction, DIRECTION_BI);
	assert_int_equal(args.batch, 128);
	assert_int_equal(args.streams, 64);
	assert_int_equal(args.threads, 2);
	assert_true(args.seconds == 0.25);
}

static void args_read__defaults(void **state)
{
	(void)state;
	assert_int_equal(read_good("latency").size, 4);
	assert_int_equal(read_good("latency").mode, MODE_SPIN);
	assert_int_equal(read_good("bandwidth").size, 65536);
	assert_int_equal(read_good("bandwidth").fan, FAN_NONE);
	assert_int_equal(read_good("connect").at_once, 1);
}

static void args_read__bounds(void **state)
{
	(void)state;
	read_good("latency size=1");
	assert_refused("latency size=0", "from 1 to 16777216");
	assert_refused("latency size=16777217", "from 1 to 16777216");
	assert_refused("hotspot clients=513", "from 1 to 512");
	assert_refused("idle connections=10001", "from 1 to 10000");
	assert_refused("bandwidth window=129", "from 1 to 128");
	assert_refused("bandwidth streams=65", "from 1 to 64");
	read_good("connect at_once=64");
	assert_refused("connect at_once=0", "from 1 to 64");
	assert_refused("connect at_once=65", "from 1 to 64");
}

static void args_read__not_numbers(void **state)
{
	(void)state;
	assert_refused("latency size=", "whole number");
	assert_refused("latency size=-1", "whole number");
	assert_refused("latency size=4k", "whole number");
	assert_refused("latency size=99999999999999999999", "whole number");
	assert_refused("latency seconds=0", "seconds above 0");
	assert_refused("latency seconds=nan", "seconds above 0");
	assert_refused("latency seconds=1s", "seconds above 0");
}

static void args_read__unknown_words(void **state)
{
	(void)state;
	assert_refused("", "no test ''");
	assert_refused("throughput", "latency, bandwidth, connect, hotspot, idle");
	assert_refused("latency size", "key=value");
	assert_refused("latency colour=red", "no key 'colour'");
	assert_refused("latency window=4", "means nothing to test 'latency'");
	assert_refused("idle at_once=4", "means nothing to test 'idle'");
	assert_refused("latency op=push", "send, write, write-cq, read");
	assert_refused("latency mode=block", "spin, event");
}

static void args_read__what_does_not_go_together(void **state)
{
	(void)state;
	assert_refused("latency op=write mode=event", "write-cq");
	assert_refused("bandwidth op=write-cq", "op=write");
	assert_refused("bandwidth op=send-done", "op=send");
	assert_refused("latency op=send-done mode=event", "mode=spin");
	assert_refused("bandwidth op=read direction=bi", "direction=uni");
	assert_refused("bandwidth op=read fan=in", "fan=none");
	assert_refused("bandwidth fan=in streams=2", "streams=1");
	assert_refused("bandwidth batch=17 window=16", "larger window");
	read_good("bandwidth batch=16 window=16");
	assert_refused("bandwidth combine=on", "messages stay apart");
	read_good("bandwidth combine=off");
	assert_refused("latency by=modify_qp", "leave it out");
	assert_refused("hotspot size=65537", "65536");
}

static void args_line__reads_back(void **state)
{
	static const char *const lines[] = {
		"latency op=write-cq mode=event size=7 seconds=0.125 iterations=20000",
		"bandwidth fan=out peers=3 size=1 window=1 seconds=2.5",
		"connect count=9",
		"connect count=9 at_once=64",
		"hotspot clients=512 size=64 seconds=1",
		"idle connections=10000",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct args args = read_good(lines[i]), again;
		char line[ARGS_TEXT_MAX];

		args_line(&args, line);
		again = read_good(line);
		assert_memory_equal(&args, &again, sizeof(args));
	}
}

static void args_json__has_what_the_test_takes(void **state)
{
	struct args args = read_good("connect count=9");
	struct json json;

	(void)state;
	json_begin(&json);
	args_json(&args, &json);
	json_end(&json);
	assert_string_equal(
		json.text,
		"{\"test\": \"connect\", \"parameters\": {\"count\": 9, \"at_once\": 1}}");
}

static void args_connections__of_each_test(void **state)
{
	struct args args = read_good("bandwidth streams=4 threads=2");

	(void)state;
	assert_int_equal(args_connections(&args), 8);
	args = read_good("bandwidth fan=in peers=5");
	assert_int_equal(args_connections(&args), 5);
	args = read_good("latency");
	assert_int_equal(args_connections(&args), 1);
	args = read_good("idle connections=7");
	assert_int_equal(args_connections(&args), 7 + ARGS_IDLE_BUSY);
}

static void args_read__one_plain_connection(void **state)
{
	static const struct args_rules plain = {
		.modes = { [TEST_LATENCY] = 1u << MODE_BLOCK, [TEST_BANDWIDTH] = 1u << MODE_BLOCK },
		.mode_default = { MODE_BLOCK, MODE_BLOCK },
		.is_plain = true,
	};
	static const char *const taken[] = { "latency", "bandwidth size=1048576 window=64",
					     "connect count=300" };
	static const char *const refused[] = { "latency op=read",
					       "bandwidth op=write",
					       "bandwidth direction=bi",
					       "bandwidth streams=2",
					       "bandwidth threads=2",
					       "bandwidth fan=in",
					       "bandwidth batch=2",
					       "connect at_once=2",
					       "hotspot",
					       "idle" };
	char why[ARGS_TEXT_MAX];
	struct args args;

	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!args_read_line(&args, &plain, taken[i], why))
			fail_msg("'%s' was refused: %s", taken[i], why);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (args_read_line(&args, &plain, refused[i], why))
			fail_msg("'%s' was taken", refused[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args_read__every_key),
		cmocka_unit_test(args_read__defaults),
		cmocka_unit_test(args_read__bounds),
		cmocka_unit_test(args_read__not_numbers),
		cmocka_unit_test(args_read__unknown_words),
		cmocka_unit_test(args_read__what_does_not_go_together),
		cmocka_unit_test(args_line__reads_back),
		cmocka_unit_test(args_json__has_what_the_test_takes),
		cmocka_unit_test(args_connections__of_each_test),
		cmocka_unit_test(args_read__one_plain_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
