// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A netlink socket that the kernel writes to when a link or an address changes. The content of a
// message is ignored. The program may have closed the fd and opened another file at its number, so
// the file is compared before use.
#include "net/base/ifnews.h"

#include "base/clock.h"
#include "net/base/io_now.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Messages that one call reads; the rest count as the next call's news. */
#define DRAIN_MAX 256
/*
 * Reading the namespace takes 2 us, four times as long as the rest; once in 10 ms that does not
 * matter.
 */
#define NS_LOOK_NS 10000000

static struct {
	bool open;
	int fd;
	struct stat file; /* fd's */
	ino_t ns; /* the namespace where it was opened */
	uint64_t state; /* the last state returned; no state is returned for two */
} news;

/* The calling thread's network namespace, or 0 without /proc, as of its last look. */
static _Thread_local ino_t own_ns;
static _Thread_local int64_t own_ns_until;

static void own_ns_look(int64_t now)
{
	struct stat st;

	own_ns = stat("/proc/thread-self/ns/net", &st) ? 0 : st.st_ino;
	own_ns_until = now + NS_LOOK_NS;
}

static bool is_ours(void)
{
	struct stat st;

	return !fstat(news.fd, &st) && st.st_ino == news.file.st_ino &&
	       st.st_dev == news.file.st_dev;
}

void aw_ifnews_end(void)
{
	if (news.open && is_ours())
		close(news.fd);
	news.open = false;
	own_ns_until = 0;
}

static void begin(int64_t now)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};

	news.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (news.fd < 0)
		return;
	if (bind(news.fd, (struct sockaddr *)&addr, sizeof(addr)) || fstat(news.fd, &news.file)) {
		close(news.fd);
		return;
	}
	own_ns_look(now);
	news.ns = own_ns;
	news.open = true;
	news.state++;
}

uint64_t aw_ifnews_state(void)
{
	int64_t now = aw_clock_ns(CLOCK_MONOTONIC_COARSE);
	bool any = false;
	char octet;

	if (now >= own_ns_until)
		own_ns_look(now);
	if (news.open && (news.ns != own_ns || !is_ours()))
		aw_ifnews_end();
	if (!news.open)
		begin(now);
	if (!news.open)
		return 0;
	for (int i = 0; i < DRAIN_MAX; i++) {
		/* ENOBUFS: the socket has dropped some messages. */
		if (aw_recv_now(news.fd, &octet, sizeof(octet), 0) < 0 && errno != ENOBUFS)
			break;
		any = true;
	}
	if (any)
		news.state++;
	return news.state;
}
