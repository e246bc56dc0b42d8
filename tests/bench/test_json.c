// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/json.h"

#include <math.h>

static void json__members_and_objects(void **state)
{
	struct json json;

	(void)state;
	json_begin(&json);
	json_count(&json, "a", UINT64_MAX);
	json_open(&json, "b");
	json_close(&json);
	json_open(&json, "c");
	json_real(&json, "d", 0.5);
	json_text(&json, "e", "f");
	json_close(&json);
	json_real(&json, "g", 1e12);
	json_end(&json);
	assert_string_equal(json.text, "{\"a\": 18446744073709551615, \"b\": {}, "
				       "\"c\": {\"d\": 0.5, \"e\": \"f\"}, \"g\": 1e+12}");
}

static void json_text__quotes(void **state)
{
	struct json json;

	(void)state;
	json_begin(&json);
	json_text(&json, "a", "\"\\\n\x01z");
	json_end(&json);
	assert_string_equal(json.text, "{\"a\": \"\\\"\\\\\\u000a\\u0001z\"}");
}

static void json_real__not_finite(void **state)
{
	struct json json;

	(void)state;
	json_begin(&json);
	json_real(&json, "a", NAN);
	json_real(&json, "b", INFINITY);
	json_end(&json);
	assert_string_equal(json.text, "{\"a\": null, \"b\": null}");
}

static void json_print__one_line(void **state)
{
	char text[32] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");
	struct json json;

	(void)state;
	assert_non_null(file);
	json_begin(&json);
	json_end(&json);
	assert_true(json_print(&json, file));
	fclose(file);
	assert_string_equal(text, "{}\n");
}

static void json_print__too_long(void **state)
{
	struct json json;

	(void)state;
	json_begin(&json);
	for (int i = 0; i < JSON_MAX / 8; i++)
		json_count(&json, "abcd", 1);
	json_end(&json);
	assert_true(json.overflow);
	assert_false(json_print(&json, stdout));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__members_and_objects), cmocka_unit_test(json_text__quotes),
		cmocka_unit_test(json_real__not_finite),     cmocka_unit_test(json_print__one_line),
		cmocka_unit_test(json_print__too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
