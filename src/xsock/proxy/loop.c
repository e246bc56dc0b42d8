// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event loop.
#include "xsock/proxy/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define EVENTS 64

static int epfd;
static struct aw_loop_source *again; /* sources to call once more before the thread sleeps */
static struct aw_loop_source *dead; /* sources to free when no event can refer to them */

int aw_loop_init(void)
{
	epfd = epoll_create1(EPOLL_CLOEXEC);
	return epfd < 0 ? errno : 0;
}

int aw_loop_set(struct aw_loop_source *source, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	int op = EPOLL_CTL_ADD;

	if (fd == source->fd && events == source->events)
		return 0;
	if (fd == source->fd && fd >= 0)
		op = EPOLL_CTL_MOD;
	else if (source->fd >= 0)
		(void)epoll_ctl(epfd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = fd;
	source->events = events;
	if (fd < 0 || epoll_ctl(epfd, op, fd, &event) == 0)
		return 0;
	source->fd = -1;
	return errno;
}

void aw_loop_again(struct aw_loop_source *source)
{
	if (source->is_again || source->is_dead)
		return;
	source->is_again = true;
	source->next_again = again;
	again = source;
}

void aw_loop_free_later(struct aw_loop_source *source)
{
	source->is_dead = true;
	source->next_dead = dead;
	dead = source;
}

void aw_loop_turn(int timeout_ms)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(epfd, events, EVENTS, again ? 0 : timeout_ms);
	struct aw_loop_source *list;

	for (int i = 0; i < count; i++) {
		struct aw_loop_source *source = events[i].data.ptr;

		if (!source->is_dead && source->fd >= 0)
			source->ready(source, events[i].events);
	}

	list = again;
	again = NULL;
	while (list) {
		struct aw_loop_source *source = list;

		list = source->next_again;
		source->is_again = false;
		if (!source->is_dead)
			source->ready(source, 0);
	}

	while (dead) {
		struct aw_loop_source *source = dead;

		dead = source->next_dead;
		if (source->free_owner)
			source->free_owner(source);
		else
			free(source->owner);
	}
}
