// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of shadow objects: one address has one live object after the other.
#include "check/model/object.h"

#include "check_reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int freed;

static void shadow_free(struct aw_object *object)
{
	freed++;
	free(object);
}

static struct aw_object *shadow_add(const void *handle, uint32_t number)
{
	struct aw_object *object = calloc(1, sizeof(*object));

	assert_non_null(object);
	object->kind = AW_KIND_QP;
	object->handle = handle;
	object->context = &freed;
	object->number = number;
	object->has_number = true;
	object->free = shadow_free;
	aw_object_add(object);
	return object;
}

static struct aw_object *by_number(uint32_t number)
{
	return aw_object_get_by_number(&freed, AW_KIND_QP, number);
}

static void goes__a_second_destroy_is_told(void **state)
{
	int handle = 0;
	struct aw_object *object;

	(void)state;
	shadow_add(&handle, 1);
	object = aw_object_get(&handle, AW_KIND_QP);
	assert_true(aw_object_goes(object));
	assert_null(by_number(1));
	assert_false(aw_object_goes(object));
	assert_int_equal(report_only(), AW_RULE_USED_AFTER_DESTROY);
	assert_false(aw_object_enter(object, false));
	assert_int_equal(report_only(), AW_RULE_USED_AFTER_DESTROY);
	aw_object_put(object);
}

static void stays__a_destroy_that_failed_leaves_the_object(void **state)
{
	int handle = 0;
	struct aw_object *object, *found;

	(void)state;
	shadow_add(&handle, 2);
	object = aw_object_get(&handle, AW_KIND_QP);
	assert_true(aw_object_goes(object));
	aw_object_stays(object);
	found = by_number(2);
	assert_ptr_equal(found, object);
	assert_true(aw_object_enter(object, true));
	aw_object_leave(object);
	assert_true(aw_object_goes(object));
	assert_int_equal(report_only(), AW_RULES);
	aw_object_put(found);
	aw_object_put(object);
}

static void add__takes_the_address_of_one_that_is_gone(void **state)
{
	int handle = 0;
	struct aw_object *object, *found;

	(void)state;
	shadow_add(&handle, 3);
	object = aw_object_get(&handle, AW_KIND_QP);
	assert_true(aw_object_goes(object));
	aw_object_put(object);
	object = shadow_add(&handle, 3);
	found = aw_object_get(&handle, AW_KIND_QP);
	assert_ptr_equal(found, object);
	assert_true(aw_object_enter(found, false));
	aw_object_leave(found);
	assert_true(aw_object_goes(found));
	assert_int_equal(report_only(), AW_RULES);
	aw_object_put(found);
}

static void enter__a_destroy_in_another_threads_call_is_told(void **state)
{
	int handle = 0;
	struct aw_object *object;

	(void)state;
	object = shadow_add(&handle, 4);
	assert_true(aw_object_enter(object, false));
	assert_true(aw_object_enter(object, true));
	assert_int_equal(report_only(), AW_RULE_DESTROYED_IN_USE);
	aw_object_leave(object);
	aw_object_leave(object);
	assert_true(aw_object_goes(object));
}

/* One more than are kept, twice over: at the same addresses, and at others. */
static void goes__more_than_are_kept_are_freed(void **state)
{
	static char handles[3 * AW_OBJECTS_GONE_MAX];
	struct aw_object *object;

	(void)state;
	freed = 0;
	for (int i = 0; i < 3 * AW_OBJECTS_GONE_MAX; i++) {
		shadow_add(&handles[i], (uint32_t)i);
		object = aw_object_get(&handles[i], AW_KIND_QP);
		assert_true(aw_object_goes(object));
		aw_object_put(object);
	}
	assert_in_range(freed, 2 * AW_OBJECTS_GONE_MAX, 2 * AW_OBJECTS_GONE_MAX + 8);
	assert_null(aw_object_get(&handles[0], AW_KIND_QP));
	object = aw_object_get(&handles[3 * AW_OBJECTS_GONE_MAX - 1], AW_KIND_QP);
	assert_non_null(object);
	aw_object_put(object);
	for (int i = 0; i < 2 * AW_OBJECTS_GONE_MAX; i++) {
		object = shadow_add(&handles[0], 1);
		assert_true(aw_object_goes(object));
	}
	assert_in_range(freed, 4 * AW_OBJECTS_GONE_MAX - 8, 4 * AW_OBJECTS_GONE_MAX + 8);
	assert_int_equal(report_only(), AW_RULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes__a_second_destroy_is_told),
		cmocka_unit_test(stays__a_destroy_that_failed_leaves_the_object),
		cmocka_unit_test(add__takes_the_address_of_one_that_is_gone),
		cmocka_unit_test(enter__a_destroy_in_another_threads_call_is_told),
		cmocka_unit_test(goes__more_than_are_kept_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
