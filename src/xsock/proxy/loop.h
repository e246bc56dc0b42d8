// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process's event loop: one thread, an epoll set, and a second look for who asked for it.
#ifndef XSOCK_PROXY_LOOP_H
#define XSOCK_PROXY_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct aw_loop {
	int epfd;
	struct aw_source *again; /* called once more before the loop sleeps */
	struct aw_source *dead; /* freed when no event can name them any more */
};

/* An fd in the loop; part of its owner. */
struct aw_source {
	int fd; /* -1: not in the set */
	uint32_t events; /* what it is registered for */
	void (*ready)(struct aw_source *source, uint32_t events);
	void (*free_owner)(struct aw_source *source); /* frees the owner */
	void *owner;
	struct aw_source *next_again, *next_dead;
	bool is_again, is_dead;
};

int aw_loop_init(struct aw_loop *loop);
/* Registers source for fd, in place of what it was registered for. fd -1 takes it out. 0 or an errno. */
int aw_loop_set(struct aw_loop *loop, struct aw_source *source, int fd, uint32_t events);
void aw_loop_again(struct aw_loop *loop, struct aw_source *source);
/* source's owner is freed by bury once all events of this round are over. */
void aw_loop_free_later(struct aw_loop *loop, struct aw_source *source);
/* Waits at most so long, and calls who is ready. */
void aw_loop_turn(struct aw_loop *loop, int timeout_ms);

#endif
