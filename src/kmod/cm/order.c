// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The module's connections that connect or wait for one that does.
#include "kmod/cm/order.h"

#include "kmod/cm/addr.h"

#include <linux/spinlock.h>
#include <net/sock.h>

static struct awk_conn *conn_of(const struct aw_turn *turn)
{
	return container_of((struct aw_turn *)turn, struct awk_conn, turn);
}

static bool is_same_peer(const struct aw_turn *a, const struct aw_turn *b)
{
	const struct awk_conn *one = conn_of(a), *other = conn_of(b);

	return awk_addr_is_same(&one->remote_addr, &other->remote_addr) &&
	       net_eq(sock_net(one->sock->sk), sock_net(other->sock->sk));
}

static void wake(struct aw_turn *turn)
{
	awk_conn_kick(conn_of(turn));
}

static DEFINE_SPINLOCK(lock);
/* Workers run side by side. */
static struct aw_turns turns = { .is_same_peer = is_same_peer, .wake = wake, .one_by_one = true };

bool awk_order_take(struct awk_conn *c)
{
	bool waits;

	c->turn.hash = awk_addr_hash(&c->remote_addr);
	spin_lock(&lock);
	waits = aw_turn_wait(&turns, &c->turn);
	spin_unlock(&lock);
	return !waits;
}

bool awk_order_waits(struct awk_conn *c)
{
	bool waits;

	spin_lock(&lock);
	waits = c->turn.waits;
	spin_unlock(&lock);
	return waits;
}

void awk_order_lead(struct awk_conn *c)
{
	spin_lock(&lock);
	aw_turn_lead(&turns, &c->turn);
	spin_unlock(&lock);
}

void awk_order_sent(struct awk_conn *c)
{
	spin_lock(&lock);
	aw_turn_sent(&turns, &c->turn);
	spin_unlock(&lock);
}

void awk_order_pass(struct awk_conn *c)
{
	spin_lock(&lock);
	aw_turn_pass(&turns, &c->turn);
	spin_unlock(&lock);
}
