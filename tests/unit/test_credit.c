// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of waiting, on a virtual clock: what earns, what costs, and what may wait.
#include "net/qp/credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A program on a clock of its own. It has polled once, long ago, and its bursts are behind one another. */
struct program {
	struct aw_post_credit posts;
	struct aw_ack_credit ack;
	struct aw_credit_polls polls;
	bool noted; /* a poll has come behind the burst */
	uint64_t now_ns;
};

static struct program begin(void)
{
	return (struct program){ .now_ns = 1000000000, .noted = true };
}

/* A call that posts, and is over at once. */
static bool post(struct program *p)
{
	bool is_burst = aw_credit_posted(&p->posts, &p->polls, p->now_ns);

	p->posts.posted_ns = p->now_ns;
	if (is_burst)
		p->noted = false;
	return is_burst;
}

static void poll_cq(struct program *p, int cq)
{
	p->polls.count++;
	if (!p->noted)
		p->polls.behind_burst_ns[cq] = p->now_ns;
	p->noted = true;
}

/* So many posts, a pause, a poll; the next burst's first post judges. */
static void burst(struct program *p, uint32_t calls, uint64_t pause_ns, int cq)
{
	for (uint32_t i = 0; i < calls; i++)
		post(p);
	p->now_ns += pause_ns;
	poll_cq(p, cq);
}

static const struct aw_credit_posts one_post = { .posts = 1, .slots = 1, .bytes = 64 };

static void posted__a_burst_is_calls_without_gap_and_poll(void **state)
{
	struct program p = begin();

	(void)state;
	assert_false(post(&p));
	p.now_ns += AW_BURST_GAP_NS - 1;
	assert_true(post(&p));
	p.now_ns += AW_BURST_GAP_NS;
	assert_false(post(&p));
	assert_true(post(&p));
	poll_cq(&p, 0);
	assert_false(post(&p));
}

/* What one burst of so many calls, with a poll so late at that CQ, makes of the credits. */
static void posted__credits(void **state)
{
	static const struct {
		uint32_t before, calls;
		uint64_t pause_ns;
		int cq;
		uint32_t after;
	} rows[] = {
		{ 0, 1, 0, 0, 0 }, /* a lone post says nothing */
		{ 5, 1, AW_BURST_GAP_NS, 0, 5 },
		{ 0, 2, 0, 0, 1 },
		{ 0, 2, AW_BURST_GAP_NS - 1, 0, 1 },
		{ 0, 2, AW_BURST_GAP_NS, 0, 0 }, /* there was none to lose */
		{ 7, 2, AW_BURST_GAP_NS, 0, 6 },
		{ 7, 2, AW_BURST_GAP_NS, 1, 6 },
		{ 7, 9, AW_BURST_GAP_NS, 0, 6 },
		{ 0, 10, 0, 0, 9 }, /* one for each call that waiting saves */
		{ 0, 10, 0, 1, 9 }, /* whichever CQ is polled */
		{ AW_CREDIT_MAX - 1, 10, 0, 0, AW_CREDIT_MAX },
		{ AW_CREDIT_MAX, 2, 0, 0, AW_CREDIT_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct program p = begin();

		p.posts.credits = rows[i].before;
		burst(&p, rows[i].calls, rows[i].pause_ns, rows[i].cq);
		post(&p);
		if (p.posts.credits != rows[i].after)
			fail_msg("row %zu: %u credits", i, p.posts.credits);
	}
}

static void posted__credit_grows_to_its_bound(void **state)
{
	struct program p = begin();

	(void)state;
	for (int i = 0; i < 2 * AW_CREDIT_MAX; i++) {
		burst(&p, 2, 0, 0);
		assert_in_range(p.posts.credits, 0, AW_CREDIT_MAX);
	}
	assert_int_equal(p.posts.credits, AW_CREDIT_MAX);
}

/* Whether the second post of a burst waits. */
static void posts__may_wait(void **state)
{
	static const struct {
		uint32_t credits;
		struct aw_credit_posts posts;
		uint64_t waited_ns; /* those before it; 0: there are none */
		bool waits;
	} rows[] = {
		{ AW_CREDIT_PRICE, { 1, 1, 64 }, 0, true },
		{ AW_CREDIT_PRICE - 1, { 1, 1, 64 }, 0, false },
		{ AW_CREDIT_MAX, { 0, 1, 0 }, 0, false }, /* nothing was committed */
		{ AW_CREDIT_MAX, { AW_WAITING_POSTS_MAX - 1, 1, 64 }, 0, true },
		{ AW_CREDIT_MAX, { AW_WAITING_POSTS_MAX, 1, 64 }, 0, false },
		{ AW_CREDIT_MAX, { 1, 1, AW_WAITING_BYTES_MAX - 1 }, 0, true },
		{ AW_CREDIT_MAX, { 1, 1, AW_WAITING_BYTES_MAX }, 0, false },
		{ AW_CREDIT_MAX, { 1, 0, 64 }, 0, false }, /* the next call may be no post */
		{ AW_CREDIT_MAX, { 2, 1, 64 }, AW_WAIT_NS - 1, true },
		{ AW_CREDIT_MAX, { 2, 1, 64 }, AW_WAIT_NS, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct program p = begin();

		p.posts.waits = rows[i].waited_ns > 0;
		p.posts.since_ns = p.now_ns - rows[i].waited_ns;
		post(&p);
		post(&p);
		p.posts.credits = rows[i].credits;
		if (aw_credit_lets_posts_wait(&p.posts, &rows[i].posts, p.now_ns) != rows[i].waits)
			fail_msg("row %zu", i);
	}
}

static void posts__lone_one_never_waits(void **state)
{
	struct program p = begin();

	(void)state;
	p.posts.credits = AW_CREDIT_MAX;
	for (int i = 0; i < 10; i++) {
		assert_false(post(&p));
		assert_false(aw_credit_lets_posts_wait(&p.posts, &one_post, p.now_ns));
		p.now_ns += AW_BURST_GAP_NS;
	}
}

/* The time runs from the oldest post; what is late costs, but no more than there is. */
static void posts__are_late(void **state)
{
	struct program p = begin();

	(void)state;
	p.posts.credits = AW_CREDIT_PRICE + 1;
	assert_false(aw_credit_posts_are_late(&p.posts, p.now_ns + AW_LATE_NS));
	aw_credit_posts_wait(&p.posts, p.now_ns);
	aw_credit_posts_wait(&p.posts, p.now_ns + AW_WAIT_NS - 1);
	assert_int_equal(p.posts.posted_ns, p.now_ns + AW_WAIT_NS - 1);
	assert_false(aw_credit_posts_are_late(&p.posts, p.now_ns + AW_LATE_NS - 1));
	assert_true(aw_credit_posts_are_late(&p.posts, p.now_ns + AW_LATE_NS));
	aw_credit_posts_were_late(&p.posts);
	assert_int_equal(p.posts.credits, 1);
	aw_credit_posts_were_late(&p.posts);
	assert_int_equal(p.posts.credits, 0);
}

enum behind {
	ANSWER,
	MISS,
};

/* What an acknowledgement, and what comes so long behind it, makes of the credits. */
static void ack__credits(void **state)
{
	static const struct {
		uint32_t before;
		enum behind behind;
		uint64_t pause_ns;
		bool waits;
		uint32_t after;
	} rows[] = {
		{ 0, ANSWER, AW_WAIT_NS - 1, false, 1 },
		{ 5, ANSWER, AW_WAIT_NS, false, 4 },
		{ 5, MISS, 0, false, 4 },
		{ 5, MISS, AW_WAIT_NS, false, 4 },
		{ 0, MISS, 0, false, 0 },
		{ AW_CREDIT_PRICE - 1, ANSWER, 0, false, AW_CREDIT_PRICE },
		{ AW_CREDIT_PRICE, ANSWER, 0, true, AW_CREDIT_PRICE + 1 },
		{ AW_CREDIT_PRICE, ANSWER, AW_WAIT_NS, true, 0 },
		{ AW_CREDIT_PRICE, MISS, AW_WAIT_NS - 1, true, AW_CREDIT_PRICE - 1 },
		{ AW_CREDIT_PRICE, MISS, AW_WAIT_NS, true, 0 },
		{ AW_CREDIT_MAX, ANSWER, 0, true, AW_CREDIT_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct program p = begin();

		p.ack.credits = rows[i].before;
		if (aw_credit_ack_due(&p.ack, p.now_ns) != rows[i].waits)
			fail_msg("row %zu: waits %d", i, !rows[i].waits);
		p.now_ns += rows[i].pause_ns;
		if (rows[i].behind == ANSWER)
			aw_credit_ack_answered(&p.ack, p.now_ns);
		else
			aw_credit_ack_missed(&p.ack, p.now_ns);
		if (p.ack.credits != rows[i].after)
			fail_msg("row %zu: %u credits", i, p.ack.credits);
		/* It counts once. */
		aw_credit_ack_answered(&p.ack, p.now_ns);
		aw_credit_ack_missed(&p.ack, p.now_ns);
		assert_int_equal(p.ack.credits, rows[i].after);
	}
}

static void ack__is_late(void **state)
{
	struct program p = begin();

	(void)state;
	assert_false(aw_credit_ack_due(&p.ack, p.now_ns));
	assert_false(aw_credit_ack_is_late(&p.ack, p.now_ns + AW_WAIT_NS));
	p.ack.credits = AW_CREDIT_PRICE;
	assert_true(aw_credit_ack_due(&p.ack, p.now_ns));
	assert_false(aw_credit_ack_is_late(&p.ack, p.now_ns + AW_WAIT_NS - 1));
	assert_true(aw_credit_ack_is_late(&p.ack, p.now_ns + AW_WAIT_NS));
}

/* Neither account pays for the other. */
static void accounts__are_apart(void **state)
{
	struct program p = begin();

	(void)state;
	burst(&p, 10, 0, 0);
	post(&p);
	assert_int_equal(p.posts.credits, 9);
	assert_int_equal(p.ack.credits, 0);
	aw_credit_ack_due(&p.ack, p.now_ns);
	aw_credit_ack_answered(&p.ack, p.now_ns);
	assert_int_equal(p.posts.credits, 9);
	assert_int_equal(p.ack.credits, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posted__a_burst_is_calls_without_gap_and_poll),
		cmocka_unit_test(posted__credits),
		cmocka_unit_test(posted__credit_grows_to_its_bound),
		cmocka_unit_test(posts__may_wait),
		cmocka_unit_test(posts__lone_one_never_waits),
		cmocka_unit_test(posts__are_late),
		cmocka_unit_test(ack__credits),
		cmocka_unit_test(ack__is_late),
		cmocka_unit_test(accounts__are_apart),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
