// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Error values are the octets of the Terminate that reports them.
#include "wire/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void aw_error__layer_type_code(void **state)
{
	(void)state;
	assert_int_equal(aw_error_layer(AW_E_DDP_TOO_LONG), 1);
	assert_int_equal(aw_error_type(AW_E_DDP_TOO_LONG), 2);
	assert_int_equal(aw_error_code(AW_E_DDP_TOO_LONG), 5);
	assert_int_equal(aw_error_layer(AW_E_RDMAP_OP_UNSPECIFIED), 0);
	assert_int_equal(aw_error_type(AW_E_RDMAP_OP_UNSPECIFIED), 2);
	assert_int_equal(aw_error_code(AW_E_RDMAP_OP_UNSPECIFIED), 0xff);
	assert_int_equal(aw_error_layer(AW_E_MPA_NO_MATCHING_RTR), 2);
	assert_int_equal(aw_error_type(AW_E_MPA_NO_MATCHING_RTR), 0);
	assert_int_equal(aw_error_code(AW_E_MPA_NO_MATCHING_RTR), 7);
}

static void aw_error__local_catastrophic_is_not_ok(void **state)
{
	(void)state;
	assert_int_not_equal(AW_E_LOCAL_CATASTROPHIC, AW_OK);
}

static void aw_error_text__names_the_layer(void **state)
{
	(void)state;
	assert_string_equal(aw_error_text(AW_OK), "no error");
	assert_string_equal(aw_error_text(AW_E_DDP_NO_BUFFER), "ddp: no buffer available");
	assert_string_equal(aw_error_text(AW_E_MPA_CRC), "mpa: crc error");
}

/* Every value a peer can send has words, and no two known errors share theirs. */
static void aw_error_text__all_values(void **state)
{
	const char *known[64];
	size_t count = 0;

	(void)state;
	for (int value = 0x10000; value < 0x20000; value++) {
		const char *text = aw_error_text((enum aw_error)value);

		assert_non_null(text);
		if (strcmp(text, "unknown error") == 0)
			continue;
		for (size_t i = 0; i < count; i++)
			assert_string_not_equal(text, known[i]);
		assert_in_range(count, 0, 63);
		known[count++] = text;
	}
	assert_int_equal(count, 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_error__layer_type_code),
		cmocka_unit_test(aw_error__local_catastrophic_is_not_ok),
		cmocka_unit_test(aw_error_text__names_the_layer),
		cmocka_unit_test(aw_error_text__all_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
