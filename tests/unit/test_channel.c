// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events behind a pollable fd: order, counts, forgetting, and readable exactly while there is one.
#include "net/cq/channel.h"

#include "../lib/proc.h"
#include "../lib/until.h"

#include "net/base/event_fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	RAISES = 5000,
};

static struct aw_channel ch;
static struct aw_source a, b;
static int object_a, object_b;

static int setup(void **state)
{
	(void)state;
	aw_source_init(&a, &object_a, 1);
	aw_source_init(&b, &object_b, 2);
	return aw_channel_init(&ch);
}

static int teardown(void **state)
{
	(void)state;
	aw_channel_fini(&ch);
	return 0;
}

static void unblock(void)
{
	assert_int_equal(fcntl(ch.fd, F_SETFL, fcntl(ch.fd, F_GETFL) | O_NONBLOCK), 0);
}

static bool is_readable(void)
{
	struct pollfd p = { .fd = ch.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void assert_next(const void *object, int kind)
{
	void *got;
	int got_kind;

	assert_int_equal(aw_channel_read(&ch, &got, &got_kind), 0);
	assert_ptr_equal(got, object);
	assert_int_equal(got_kind, kind);
}

static void assert_empty(void)
{
	void *got;
	int got_kind;

	assert_false(is_readable());
	unblock();
	assert_int_equal(aw_channel_read(&ch, &got, &got_kind), EAGAIN);
}

static void channel_init__fd(void **state)
{
	(void)state;
	assert_true(fcntl(ch.fd, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(ch.fd, F_GETFL) & O_NONBLOCK);
	assert_empty();
}

static void channel_read__in_order(void **state)
{
	(void)state;
	aw_channel_raise(&ch, &b);
	aw_channel_raise(&ch, &a);
	assert_true(is_readable());
	assert_next(&object_b, 2);
	assert_true(is_readable());
	assert_next(&object_a, 1);
	assert_empty();
}

static void channel_raise__counts_and_takes_turns(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		aw_channel_raise(&ch, &a);
	aw_channel_raise(&ch, &b);
	assert_next(&object_a, 1);
	assert_next(&object_b, 2);
	assert_next(&object_a, 1);
	assert_next(&object_a, 1);
	assert_empty();
}

static void channel_raise_once__until_it_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		aw_channel_raise_once(&ch, &a);
	aw_channel_raise(&ch, &b);
	assert_next(&object_a, 1);
	aw_channel_raise_once(&ch, &a);
	assert_next(&object_b, 2);
	assert_next(&object_a, 1);
	assert_empty();
}

static void channel_forget__others_stay(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		aw_channel_raise(&ch, &a);
	aw_channel_raise(&ch, &b);
	assert_next(&object_a, 1);
	assert_int_equal(aw_channel_forget(&ch, &a), 3);
	assert_int_equal(aw_channel_forget(&ch, &a), 0);
	assert_next(&object_b, 2);
	assert_empty();
	aw_channel_raise(&ch, &a);
	assert_next(&object_a, 1);
}

static void channel_forget__last_one(void **state)
{
	(void)state;
	aw_channel_raise(&ch, &a);
	assert_int_equal(aw_channel_forget(&ch, &a), 1);
	assert_empty();
}

/* What the holder raised needs no turn of the fd: the first is its own, the others are told of. */
static void channel_hold__first_in_memory(void **state)
{
	void *object;
	int kind;

	(void)state;
	aw_channel_hold(&ch);
	aw_channel_raise(&ch, &a);
	aw_channel_raise(&ch, &b);
	assert_false(is_readable());
	assert_true(aw_channel_release(&ch, &object, &kind));
	assert_ptr_equal(object, &object_a);
	assert_true(is_readable());
	assert_next(&object_b, 2);
	assert_empty();
	aw_channel_raise(&ch, &a);
	assert_true(is_readable());
}

static void channel_hold__forgotten_meanwhile(void **state)
{
	void *object;
	int kind;

	(void)state;
	aw_channel_raise(&ch, &b);
	aw_channel_hold(&ch);
	aw_channel_raise(&ch, &a);
	assert_int_equal(aw_channel_forget(&ch, &a), 1);
	assert_true(aw_channel_release(&ch, &object, &kind));
	assert_ptr_equal(object, &object_b);
	assert_empty();
}

/* The holder's own event is read as it is raised: who forgets the source leaves it, and waits for its acknowledgement. */
static void channel_hold__takes_its_own_at_once(void **state)
{
	void *object;
	int kind;

	(void)state;
	aw_channel_hold(&ch);
	aw_channel_raise(&ch, &a);
	assert_int_equal(a.taken, 1);
	assert_false(aw_channel_is_filled(&ch));
	assert_int_equal(aw_channel_forget(&ch, &a), 0);
	assert_true(aw_channel_release(&ch, &object, &kind));
	assert_ptr_equal(object, &object_a);
	assert_int_equal(kind, 1);
	assert_int_equal(a.taken, 1);
	aw_channel_hold(&ch);
	assert_false(aw_channel_release(&ch, &object, &kind));
	assert_empty();
}

static void *read_one(void *unused)
{
	void *object;
	int kind;

	(void)unused;
	return aw_channel_read(&ch, &object, &kind) == 0 ? object : NULL;
}

/* The reader has lowered the fd, and takes one of two events for which nobody else raises it, behind the holder's own. */
static void channel_read__leaves_the_fd_readable(void **state)
{
	pthread_t reader;
	void *object;
	int kind;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, read_one, NULL), 0);
	until(proc_others_sleep());
	aw_channel_hold(&ch);
	for (int i = 0; i < 3; i++)
		aw_channel_raise(&ch, &a);
	assert_false(is_readable());
	aw_event_fd_raise(ch.fd);
	assert_int_equal(pthread_join(reader, &object), 0);
	assert_ptr_equal(object, &object_a);
	assert_true(is_readable());
	assert_true(aw_channel_release(&ch, &object, &kind));
	assert_next(&object_a, 1);
	assert_empty();
}

static void *raise_many(void *src)
{
	for (int i = 0; i < RAISES; i++)
		aw_channel_raise(&ch, src);
	return NULL;
}

static _Atomic int reads[3];

static void *read_many(void *unused)
{
	(void)unused;
	for (int i = 0; i < RAISES; i++) {
		void *object;
		int kind;

		if (aw_channel_read(&ch, &object, &kind) == 0)
			reads[kind]++;
	}
	return NULL;
}

static void channel_threads__each_event_once(void **state)
{
	pthread_t threads[4];

	(void)state;
	pthread_create(&threads[0], NULL, raise_many, &a);
	pthread_create(&threads[1], NULL, raise_many, &b);
	pthread_create(&threads[2], NULL, read_many, NULL);
	pthread_create(&threads[3], NULL, read_many, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(reads[1], RAISES);
	assert_int_equal(reads[2], RAISES);
	assert_empty();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Neither the parent's events nor its fd are the child's, and what the child does with its own leaves them alone. */
static void use_in_child(void)
{
	assert_empty();
	assert_int_equal(aw_channel_forget(&ch, &a), 0);
	aw_channel_raise(&ch, &a);
	assert_true(is_readable());
	assert_next(&object_a, 1);
	assert_empty();
}

static void channel__child_starts_without_events(void **state)
{
	int status;

	(void)state;
	aw_channel_raise(&ch, &a);
	pid_t pid = fork();

	if (pid == 0) {
		use_in_child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_readable());
	assert_next(&object_a, 1);
	assert_false(is_readable());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(channel_init__fd),
		TEST(channel_read__in_order),
		TEST(channel_raise__counts_and_takes_turns),
		TEST(channel_raise_once__until_it_is_read),
		TEST(channel_forget__others_stay),
		TEST(channel_forget__last_one),
		TEST(channel_hold__first_in_memory),
		TEST(channel_hold__forgotten_meanwhile),
		TEST(channel_hold__takes_its_own_at_once),
		TEST(channel_read__leaves_the_fd_readable),
		TEST(channel_threads__each_event_once),
		TEST(channel__child_starts_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
