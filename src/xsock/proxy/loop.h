// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process's event loop: one thread, an epoll set, and a list of sources that are called
// once more before the thread sleeps.
#ifndef XSOCK_PROXY_LOOP_H
#define XSOCK_PROXY_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* An fd in the loop; a member of its owner. */
struct aw_loop_source {
	int fd; /* -1: not registered */
	uint32_t events; /* the EPOLL* bits that fd is registered for */
	void (*ready)(struct aw_loop_source *source, uint32_t events);
	void (*free_owner)(struct aw_loop_source *source); /* frees the owner; NULL: free(3) does */
	void *owner;
	struct aw_loop_source *next_again, *next_dead;
	bool is_again, is_dead;
};

/* Returns 0 or an errno. */
int aw_loop_init(void);
/*
 * Registers source for fd and events, in place of its last ones; fd -1: for nothing. Returns 0 or
 * an errno.
 */
int aw_loop_set(struct aw_loop_source *source, int fd, uint32_t events);
/* Has source->ready called once more before the thread sleeps. */
void aw_loop_again(struct aw_loop_source *source);
/*
 * Frees source's owner once all events of this turn have been served. ready is not called any
 * more.
 */
void aw_loop_free_later(struct aw_loop_source *source);
/* Waits for events, at most timeout_ms, and calls the ready functions. */
void aw_loop_turn(int timeout_ms);

#endif
