// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The registration is a name that exists. The servers that do not take offers are in a small table of this process.
#include "xsock/pair/hint.h"

#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/pair/spare.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"

#define SERVERS 16 /* a forgotten server costs one offer more */
#define MISSES_MAX \
	6 /* so often the pause doubles: one connection of 64 makes an offer at the least */

/* Under the table's lock. */
static struct server {
	struct aw_tcp_end at;
	unsigned misses; /* offers in a row that the server has not taken; 0: the place is free */
	unsigned skip; /* connections that do without an offer */
} servers[SERVERS];
static unsigned servers_next;
static _Atomic(bool) any_misses; /* the table has had an entry */

static struct aw_spare_place asker; /* of aw_hint_refuses */

static int open_datagram(void)
{
	return aw_libc()->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int aw_hint_register(const struct aw_tcp_end *at)
{
	struct sockaddr_un name;
	socklen_t len = aw_pair_listener_name(at, &name);
	int fd = open_datagram();

	if (fd < 0)
		return 0;
	/* A datagram would stay in the queue. */
	if (aw_libc()->bind(fd, (struct sockaddr *)&name, len) != 0 ||
	    aw_libc()->shutdown(fd, SHUT_RD) != 0) {
		aw_libc()->close(fd);
		return 0;
	}
	return aw_proxy_move_high(fd);
}

static struct server *find_server(const struct aw_tcp_end *at)
{
	for (int i = 0; i < SERVERS; i++)
		if (servers[i].misses && servers[i].at.port == at->port &&
		    memcmp(servers[i].at.ip, at->ip, sizeof(at->ip)) == 0)
			return &servers[i];
	return NULL;
}

/* Returns whether this connection does without an offer, and counts it. */
static bool skips(const struct aw_tcp_end *at)
{
	struct server *server;
	bool skips;

	if (!atomic_load_explicit(&any_misses, memory_order_relaxed))
		return false;
	aw_fdtab_lock();
	server = find_server(at);
	skips = server && server->skip;
	if (skips)
		server->skip--;
	aw_fdtab_unlock();
	return skips;
}

void aw_hint_note(const struct aw_tcp_end *at, bool taken)
{
	struct server *server;

	if (taken && !atomic_load_explicit(&any_misses, memory_order_relaxed))
		return;
	aw_fdtab_lock();
	atomic_store_explicit(&any_misses, true, memory_order_relaxed);
	server = find_server(at);
	if (taken && server)
		server->misses = 0;
	if (!taken && !server) {
		server = &servers[servers_next++ % SERVERS];
		*server = (struct server){ .at = *at };
	}
	if (!taken) {
		server->misses += server->misses < MISSES_MAX;
		server->skip = (1u << server->misses) - 1;
	}
	aw_fdtab_unlock();
}

static bool is_registered(int fd, const struct aw_tcp_end *at)
{
	struct sockaddr_un name;
	socklen_t len = aw_pair_listener_name(at, &name);

	return aw_libc()->connect(fd, (struct sockaddr *)&name, len) == 0;
}

enum aw_plain aw_hint_refuses(const struct aw_tcp_end *server)
{
	struct aw_tcp_end any = aw_pair_any(server);
	struct aw_spare spare;
	int fd = aw_spare_take(&spare, &asker, open_datagram);
	bool found = fd >= 0 && (is_registered(fd, server) || is_registered(fd, &any));

	aw_spare_give_back(&spare, fd >= 0);
	if (fd < 0)
		return AW_PLAIN_NO_SOCKET;
	if (!found)
		return AW_PLAIN_NO_LISTENER;
	return skips(server) ? AW_PLAIN_LATE_BEFORE : AW_PLAIN_NOT;
}
