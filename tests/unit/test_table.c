// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of handles: what is found when, who releases, order of reuse, and all of it at once
// from several threads.
#include "ring/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

static int released;

static void count_release(void *object)
{
	(*(int *)object)++;
	released++;
}

static int setup(void **state)
{
	struct aw_table *t = malloc(sizeof(*t));

	released = 0;
	*state = t;
	return aw_table_init(t, 3 * AW_TABLE_CHUNK);
}

static uint32_t count_of(const struct aw_table *t)
{
	return t->count;
}

static int teardown(void **state)
{
	aw_table_fini(*state);
	free(*state);
	return 0;
}

static void table_init__rounds_up_to_chunks(void **state)
{
	struct aw_table t;

	(void)state;
	assert_int_equal(aw_table_init(&t, 1), 0);
	assert_int_equal(t.capacity, AW_TABLE_CHUNK);
	aw_table_fini(&t);
}

static void table_insert__is_found(void **state)
{
	int a = 0, b = 0;
	uint32_t ha = aw_table_insert(*state, &a, NULL);
	uint32_t hb = aw_table_insert(*state, &b, NULL);

	assert_int_not_equal(ha, hb);
	assert_ptr_equal(aw_table_get(*state, ha), &a);
	assert_ptr_equal(aw_table_get(*state, hb), &b);
	assert_int_equal(count_of(*state), 2);
	aw_table_put(*state, ha);
	aw_table_put(*state, hb);
	aw_table_remove(*state, ha);
	aw_table_remove(*state, hb);
	assert_int_equal(count_of(*state), 0);
}

static void table_insert__full_table(void **state)
{
	struct aw_table *t = *state;
	int object = 0;

	for (uint32_t i = 0; i < t->capacity; i++)
		assert_int_equal(aw_table_insert(t, &object, count_release), i);
	assert_int_equal(aw_table_insert(t, &object, count_release), AW_TABLE_NONE);
	aw_table_remove(t, 7);
	assert_int_equal(aw_table_insert(t, &object, count_release), 7);
	for (uint32_t i = 0; i < t->capacity; i++)
		aw_table_remove(t, i);
	assert_int_equal(object, t->capacity + 1);
}

static void table_insert__freed_handles_rest(void **state)
{
	struct aw_table *t = *state;
	int object = 0;
	uint32_t first = aw_table_insert(t, &object, NULL);

	aw_table_remove(t, first);
	for (uint32_t i = 1; i < AW_TABLE_CHUNK; i++) {
		uint32_t handle = aw_table_insert(t, &object, NULL);

		assert_int_not_equal(handle, first);
		aw_table_remove(t, handle);
	}
	/* The first chunk is used up: the oldest comes back, before memory grows. */
	assert_int_equal(aw_table_insert(t, &object, NULL), first);
	aw_table_remove(t, first);
}

static void table_reserve__is_not_found_before_publish(void **state)
{
	int object = 0;
	uint32_t handle = aw_table_reserve(*state);

	assert_null(aw_table_get(*state, handle));
	aw_table_publish(*state, handle, &object, NULL);
	assert_ptr_equal(aw_table_get(*state, handle), &object);
	aw_table_put(*state, handle);
	aw_table_remove(*state, handle);
}

static void table_cancel__gives_the_handle_back(void **state)
{
	uint32_t handle = aw_table_reserve(*state);

	aw_table_cancel(*state, handle);
	assert_int_equal(count_of(*state), 0);
	assert_null(aw_table_get(*state, handle));
}

static void table_get__unknown_handles(void **state)
{
	static const uint32_t handles[] = { 0,
					    1,
					    AW_TABLE_CHUNK,
					    3 * AW_TABLE_CHUNK - 1,
					    3 * AW_TABLE_CHUNK,
					    UINT32_MAX - 1,
					    AW_TABLE_NONE };

	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		assert_null(aw_table_get(*state, handles[i]));
}

static void table_remove__releases_at_once(void **state)
{
	int object = 0;
	uint32_t handle = aw_table_insert(*state, &object, count_release);

	aw_table_remove(*state, handle);
	assert_int_equal(object, 1);
	assert_null(aw_table_get(*state, handle));
}

static void table_remove__last_put_releases(void **state)
{
	int object = 0;
	uint32_t handle = aw_table_insert(*state, &object, count_release);

	assert_non_null(aw_table_get(*state, handle));
	assert_non_null(aw_table_get(*state, handle));
	aw_table_remove(*state, handle);
	assert_null(aw_table_get(*state, handle));
	aw_table_put(*state, handle);
	assert_int_equal(object, 0);
	aw_table_put(*state, handle);
	assert_int_equal(object, 1);
}

static void table_hide__keeps_the_handle_taken(void **state)
{
	int object = 0;
	uint32_t handle = aw_table_insert(*state, &object, count_release);

	assert_non_null(aw_table_get(*state, handle));
	aw_table_hide(*state, handle);
	assert_null(aw_table_get(*state, handle));
	aw_table_put(*state, handle);
	assert_int_equal(object, 0);
	assert_int_equal(count_of(*state), 1);
	aw_table_remove(*state, handle);
	assert_int_equal(object, 1);
}

/* Threads. */

enum {
	ROUNDS = 4000,
	SLOTS = 8,
};

struct shared {
	struct aw_table *t;
	_Atomic uint32_t handles[SLOTS];
	_Atomic bool stop;
	_Atomic int wrong;
};

struct object {
	_Atomic int alive;
};

static void bury(void *arg)
{
	struct object *o = arg;

	o->alive = 0;
	free(o);
}

static void *look_up(void *arg)
{
	struct shared *s = arg;

	for (uint32_t i = 0; !s->stop; i++) {
		uint32_t handle = s->handles[i % SLOTS];
		struct object *o = aw_table_get(s->t, handle);

		if (!o)
			continue;
		if (o->alive != 1)
			s->wrong++;
		aw_table_put(s->t, handle);
	}
	return NULL;
}

static void *replace(void *arg)
{
	struct shared *s = arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		_Atomic uint32_t *at = &s->handles[i % SLOTS];
		struct object *o = calloc(1, sizeof(*o));

		o->alive = 1;
		uint32_t old = atomic_exchange(at, aw_table_insert(s->t, o, bury));

		if (old == AW_TABLE_NONE)
			continue;
		if (i % 2)
			aw_table_remove(s->t, old);
		else
			aw_table_remove_wait(s->t, old);
	}
	s->stop = true;
	return NULL;
}

static void table_threads__nothing_dead_is_found(void **state)
{
	struct shared s = { .t = *state };
	pthread_t writers[2], readers[2];

	for (int i = 0; i < SLOTS; i++)
		s.handles[i] = AW_TABLE_NONE;
	for (int i = 0; i < 2; i++) {
		pthread_create(&readers[i], NULL, look_up, &s);
		pthread_create(&writers[i], NULL, replace, &s);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(writers[i], NULL);
		pthread_join(readers[i], NULL);
	}
	assert_int_equal(s.wrong, 0);
	for (int i = 0; i < SLOTS; i++)
		if (s.handles[i] != AW_TABLE_NONE)
			aw_table_remove_wait(s.t, s.handles[i]);
	assert_int_equal(count_of(s.t), 0);
}

struct holder {
	struct aw_table *t;
	uint32_t handle;
	int *object;
};

/* Lets go only after the remover has hidden the object; writes to it to the very end. */
static void *hold(void *arg)
{
	struct holder *h = arg;
	void *again;

	while ((again = aw_table_get(h->t, h->handle)))
		aw_table_put(h->t, h->handle);
	*h->object = 42;
	aw_table_put(h->t, h->handle);
	return NULL;
}

static void table_remove_wait__waits_for_the_holder(void **state)
{
	for (int i = 0; i < 200; i++) {
		int object = 0;
		struct holder h = { .t = *state, .object = &object };
		pthread_t thread;

		h.handle = aw_table_insert(*state, &object, NULL);
		assert_non_null(aw_table_get(*state, h.handle));
		pthread_create(&thread, NULL, hold, &h);
		aw_table_remove_wait(*state, h.handle);
		assert_int_equal(object, 42);
		pthread_join(thread, NULL);
	}
}

/* As a window does it: the handle stays, what is behind it changes once nobody holds it. */
static void table_withdraw_wait__waits_and_the_handle_is_reserved(void **state)
{
	uint32_t handle = aw_table_reserve(*state);

	for (int i = 0; i < 200; i++) {
		int object = 0;
		struct holder h = { .t = *state, .object = &object, .handle = handle };
		pthread_t thread;

		aw_table_publish(*state, handle, &object, count_release);
		assert_ptr_equal(aw_table_get(*state, handle), &object);
		pthread_create(&thread, NULL, hold, &h);
		aw_table_hide(*state, handle);
		assert_null(aw_table_get(*state, handle));
		aw_table_withdraw_wait(*state, handle);
		assert_int_equal(object, 42);
		assert_null(aw_table_get(*state, handle));
		assert_int_equal(count_of(*state), 1);
		pthread_join(thread, NULL);
	}
	aw_table_cancel(*state, handle);
	assert_int_equal(released, 0);
}

static void table_withdraw_wait__not_hidden(void **state)
{
	uint32_t handle = aw_table_reserve(*state);
	int object = 0;

	aw_table_publish(*state, handle, &object, NULL);
	aw_table_withdraw_wait(*state, handle);
	assert_null(aw_table_get(*state, handle));
	aw_table_cancel(*state, handle);
}

static void table_fork_child__withdraws_at_once(void **state)
{
	uint32_t handle = aw_table_reserve(*state);
	int object = 0, other = 0;

	aw_table_publish(*state, handle, &object, NULL);
	assert_non_null(aw_table_get(*state, handle));
	aw_table_fork_prepare(*state);
	aw_table_fork_child(*state);
	aw_table_withdraw_wait(*state, handle);
	aw_table_publish(*state, handle, &other, NULL);
	assert_ptr_equal(aw_table_get(*state, handle), &other);
	aw_table_put(*state, handle);
	aw_table_withdraw_wait(*state, handle);
	aw_table_cancel(*state, handle);
}

static void table_fork_child__waits_for_nobody(void **state)
{
	int object = 0;
	uint32_t held = aw_table_insert(*state, &object, count_release);
	uint32_t idle = aw_table_insert(*state, &object, count_release);

	assert_non_null(aw_table_get(*state, held));
	aw_table_fork_prepare(*state);
	aw_table_fork_child(*state); /* as in the child, where the holder is gone */
	aw_table_remove_wait(*state, held);
	assert_int_equal(object, 0);
	aw_table_remove_wait(*state, idle);
	assert_int_equal(object, 1);
	aw_table_put(*state, held); /* if the holder is this thread after all */
	assert_int_equal(object, 2);
}

static void table_walk__passes_every_live_handle(void **state)
{
	int objects[3];
	uint32_t handles[3], at = 0, end;

	for (int i = 0; i < 3; i++)
		handles[i] = aw_table_insert(*state, &objects[i], NULL);
	aw_table_remove(*state, handles[1]);
	end = aw_table_end(*state);
	assert_ptr_equal(aw_table_walk(*state, &at, end), &objects[0]);
	assert_int_equal(at, handles[0]);
	aw_table_put(*state, at++);
	assert_ptr_equal(aw_table_walk(*state, &at, end), &objects[2]);
	assert_int_equal(at, handles[2]);
	aw_table_put(*state, at++);
	assert_null(aw_table_walk(*state, &at, end));
	aw_table_remove_wait(*state, handles[0]); /* nothing is held any more */
	aw_table_remove_wait(*state, handles[2]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(table_init__rounds_up_to_chunks),
		TEST(table_insert__is_found),
		TEST(table_insert__full_table),
		TEST(table_insert__freed_handles_rest),
		TEST(table_reserve__is_not_found_before_publish),
		TEST(table_cancel__gives_the_handle_back),
		TEST(table_get__unknown_handles),
		TEST(table_remove__releases_at_once),
		TEST(table_remove__last_put_releases),
		TEST(table_hide__keeps_the_handle_taken),
		TEST(table_threads__nothing_dead_is_found),
		TEST(table_remove_wait__waits_for_the_holder),
		TEST(table_withdraw_wait__waits_and_the_handle_is_reserved),
		TEST(table_withdraw_wait__not_hidden),
		TEST(table_walk__passes_every_live_handle),
		TEST(table_fork_child__withdraws_at_once),
		TEST(table_fork_child__waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
