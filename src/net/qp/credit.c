// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of credit.h.
#include "net/qp/credit.h"

static void credits_earn(uint32_t *credits, uint32_t earned)
{
	uint32_t room = AW_CREDIT_MAX - *credits;

	*credits += earned < room ? earned : room;
}

static void credits_pay(uint32_t *credits, uint32_t price)
{
	*credits -= price < *credits ? price : *credits;
}

bool aw_credit_posted(struct aw_post_credit *c, const struct aw_credit_polls *polls,
		      uint64_t now_ns)
{
	bool polled = polls->count != c->polls;

	/* Where no poll came behind the burst, the difference is very large. */
	if (polled && c->calls > 1) {
		if (polls->behind_burst_ns[0] - c->posted_ns < AW_BURST_GAP_NS ||
		    polls->behind_burst_ns[1] - c->posted_ns < AW_BURST_GAP_NS)
			credits_earn(&c->credits, c->calls - 1);
		else
			credits_pay(&c->credits, 1);
	}
	if (polled || now_ns - c->posted_ns >= AW_BURST_GAP_NS)
		c->calls = 0;
	c->polls = polls->count;
	c->calls++;
	return c->calls > 1;
}

bool aw_credit_lets_posts_wait(const struct aw_post_credit *c, const struct aw_credit_posts *posts,
			       uint64_t now_ns)
{
	if (c->calls < 2 || c->credits < AW_CREDIT_PRICE)
		return false;
	if (c->waits && now_ns - c->since_ns >= AW_WAIT_NS)
		return false;
	return posts->posts > 0 && posts->posts < AW_WAITING_POSTS_MAX &&
	       posts->bytes < AW_WAITING_BYTES_MAX && posts->slots > 0;
}

void aw_credit_posts_wait(struct aw_post_credit *c, uint64_t now_ns)
{
	c->posted_ns = now_ns;
	if (!c->waits)
		c->since_ns = now_ns;
	c->waits = true;
}

bool aw_credit_posts_are_late(const struct aw_post_credit *c, uint64_t now_ns)
{
	return c->waits && now_ns - c->since_ns >= AW_LATE_NS;
}

void aw_credit_posts_were_late(struct aw_post_credit *c)
{
	credits_pay(&c->credits, AW_CREDIT_PRICE);
}

bool aw_credit_ack_due(struct aw_ack_credit *c, uint64_t now_ns)
{
	c->due = true;
	c->since_ns = now_ns;
	c->waits = c->credits >= AW_CREDIT_PRICE;
	return c->waits;
}

static bool is_long(const struct aw_ack_credit *c, uint64_t now_ns)
{
	return now_ns - c->since_ns >= AW_WAIT_NS;
}

void aw_credit_ack_answered(struct aw_ack_credit *c, uint64_t now_ns)
{
	if (!c->due)
		return;
	c->due = false;
	if (is_long(c, now_ns))
		credits_pay(&c->credits, c->waits ? AW_CREDIT_PRICE : 1);
	else
		credits_earn(&c->credits, 1);
}

void aw_credit_ack_missed(struct aw_ack_credit *c, uint64_t now_ns)
{
	if (!c->due)
		return;
	c->due = false;
	credits_pay(&c->credits, c->waits && is_long(c, now_ns) ? AW_CREDIT_PRICE : 1);
}

bool aw_credit_ack_is_late(const struct aw_ack_credit *c, uint64_t now_ns)
{
	return c->waits && is_long(c, now_ns);
}
