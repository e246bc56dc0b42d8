// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's conns that connect or wait for one that does, under a lock of its own, which is taken under a conn's.
#include "net/conn/order.h"

#include "net/base/addr.h"
#include "net/base/fork.h"
#include "ring/lock.h"

#include <netinet/in.h>
#include <string.h>

#define WAKE_MS 1 /* the shortest deadline of the progress thread */

static struct aw_conn *conn_of(const struct aw_turn *turn)
{
	return (struct aw_conn *)(void *)((char *)turn - offsetof(struct aw_conn, turn));
}

static bool is_same_peer(const struct aw_turn *turn, const struct aw_turn *other)
{
	const struct sockaddr_storage *a = &conn_of(turn)->info.peer;
	const struct sockaddr_storage *b = &conn_of(other)->info.peer;

	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static void wake(struct aw_turn *turn)
{
	aw_watch_deadline(&conn_of(turn)->watch, WAKE_MS);
}

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct aw_turns turns AW_GUARDED_BY(lock) = { .is_same_peer = is_same_peer, .wake = wake };

/* The listed conns are the parent's. */
static void fork_child(void) AW_REQUIRES(lock)
{
	memset(turns.lists, 0, sizeof(turns.lists));
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_TURNS, &fork_handlers);
}

void aw_order_begin(struct aw_conn *c)
{
	const struct sockaddr_storage *addr = &c->info.peer;
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;

	/* The peers of one process differ in the low bytes of their addresses, or in the port. */
	if (addr->ss_family == AF_INET)
		c->turn.hash = ntohl(v4->sin_addr.s_addr) + ntohs(v4->sin_port);
	else
		c->turn.hash = ntohl(v6->sin6_addr.s6_addr32[3]) + ntohs(v6->sin6_port);
}

bool aw_order_is_led(struct aw_conn *c)
{
	aw_lock(&lock);
	bool led = aw_turn_is_led(&turns, &c->turn);

	aw_unlock(&lock);
	return led;
}

void aw_order_lead(struct aw_conn *c)
{
	aw_lock(&lock);
	aw_turn_lead(&turns, &c->turn);
	aw_unlock(&lock);
}

void aw_order_wait(struct aw_conn *c)
{
	aw_lock(&lock);
	if (!aw_turn_wait(&turns, &c->turn))
		wake(&c->turn);
	aw_unlock(&lock);
}

void aw_order_pass(struct aw_conn *c)
{
	aw_lock(&lock);
	aw_turn_pass(&turns, &c->turn);
	aw_unlock(&lock);
}
