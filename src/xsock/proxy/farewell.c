// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each socket is an edge-triggered source of the loop: a part of a Request does not wake the loop
// again.
#include "xsock/proxy/farewell.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "xsock/framed/calls.h"
#include "xsock/proxy/closer.h"
#include "xsock/proxy/loop.h"

/* as long as a program that writes first waits for its client's Request */
#define PATIENCE_NS INT64_C(1000000000)

struct farewell {
	LIST_ENTRY(farewell) entry;
	struct aw_loop_source source;
	int64_t until_ns;
};

static LIST_HEAD(, farewell) farewells;

static void farewell_end(struct farewell *farewell)
{
	int fd = farewell->source.fd;

	LIST_REMOVE(farewell, entry);
	(void)aw_loop_set(&farewell->source, -1, 0);
	aw_closer_close(fd);
	aw_loop_free_later(&farewell->source);
}

static void farewell_ready(struct aw_loop_source *source, uint32_t events)
{
	struct farewell *farewell = source->owner;

	if (aw_record_take_request(source->fd) != -EAGAIN ||
	    events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
		farewell_end(farewell);
}

void aw_farewell_add(int tcp)
{
	struct farewell *farewell = calloc(1, sizeof(*farewell));

	if (!farewell) {
		aw_closer_close(tcp);
		return;
	}
	*farewell = (struct farewell){
		.source = { .fd = -1, .ready = farewell_ready, .owner = farewell },
		.until_ns = aw_now_ns() + PATIENCE_NS,
	};
	if (aw_loop_set(&farewell->source, tcp, EPOLLIN | EPOLLRDHUP | EPOLLET) != 0) {
		free(farewell);
		aw_closer_close(tcp);
		return;
	}
	LIST_INSERT_HEAD(&farewells, farewell, entry);
}

void aw_farewell_review(void)
{
	struct farewell *next;

	for (struct farewell *farewell = LIST_FIRST(&farewells); farewell; farewell = next) {
		next = LIST_NEXT(farewell, entry);
		if (farewell->until_ns <= aw_now_ns())
			farewell_end(farewell);
	}
}

bool aw_farewell_any(void)
{
	return !LIST_EMPTY(&farewells);
}
