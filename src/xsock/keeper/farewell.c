// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A source for each socket, by edges: part of a Request does not wake the loop again.
#include "xsock/keeper/farewell.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "record/startup.h"
#include "xsock/keeper/closer.h"

#define PATIENCE_NS INT64_C(1000000000) /* as long as a program waits that writes first */

struct farewell {
	struct farewell *next;
	struct aw_source source;
	int64_t until_ns;
};

static struct aw_loop *loop;
static struct farewell *farewells;
static int count;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void bury(struct aw_source *source)
{
	free(source->owner);
}

static void end(struct farewell *farewell)
{
	struct farewell **at = &farewells;
	int fd = farewell->source.fd;

	while (*at != farewell)
		at = &(*at)->next;
	*at = farewell->next;
	count--;
	(void)aw_loop_set(loop, &farewell->source, -1, 0);
	aw_closer_close(fd);
	aw_loop_bury(loop, &farewell->source);
}

/* Takes the Request out of the socket if it is whole. False: its rest may still come. */
static bool take_request(int fd)
{
	uint8_t bytes[AW_STARTUP_MAX];
	const uint8_t *data;
	size_t used, len;
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

	if (got <= 0)
		return got == 0;
	switch (aw_startup_get(bytes, (size_t)got, false, &used, &data, &len)) {
	case AW_STARTUP_WHOLE:
		(void)recv(fd, bytes, used, MSG_DONTWAIT);
		return true;
	case AW_STARTUP_MORE:
		return false;
	case AW_STARTUP_WRONG:
		break;
	}
	return true;
}

static void ready(struct aw_source *source, uint32_t events)
{
	struct farewell *farewell = source->owner;

	if (take_request(source->fd) || events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
		end(farewell);
}

void aw_farewell_add(struct aw_loop *in, int tcp)
{
	struct farewell *farewell = calloc(1, sizeof(*farewell));

	loop = in;
	if (!farewell) {
		aw_closer_close(tcp);
		return;
	}
	*farewell = (struct farewell){
		.next = farewells,
		.source = { .fd = -1, .ready = ready, .bury = bury, .owner = farewell },
		.until_ns = now_ns() + PATIENCE_NS,
	};
	if (aw_loop_set(loop, &farewell->source, tcp, EPOLLIN | EPOLLRDHUP | EPOLLET) != 0) {
		free(farewell);
		aw_closer_close(tcp);
		return;
	}
	farewells = farewell;
	count++;
}

void aw_farewell_review(void)
{
	struct farewell *next;

	for (struct farewell *farewell = farewells; farewell; farewell = next) {
		next = farewell->next;
		if (farewell->until_ns <= now_ns())
			end(farewell);
	}
}

int aw_farewell_count(void)
{
	return count;
}
