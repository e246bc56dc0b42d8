// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A proxy process as a program starts it, and orders to it.
#ifndef TESTS_XSOCK_REQUESTS_H
#define TESTS_XSOCK_REQUESTS_H

#include <sys/types.h>
#include <unistd.h>

#include "xsock/base/request.h"

#define PATIENCE_S 20 /* an answer takes a moment; a loaded machine may take long over it */
#define NO_ANSWER (-1)
#define NOT_ALLOWED 77 /* an exit of as_another's: the machine does not let us */
#define CHECK(claim) ((claim) ? (void)0 : _exit(1))

/* A proxy process and a connection of it, begun by who has started it. */
struct scene {
	pid_t proxy;
	int control, tcp, near, listener;
};

struct aw_request new_request(enum aw_request_kind kind);
void tell(const struct scene *s, const struct aw_request *request, const int *fds, int count);
/* The answer's error, or NO_ANSWER. about: fds before the socket for the answer. */
int ask(const struct scene *s, const struct aw_request *request, const int *about, int count,
	struct aw_reply *answer);
/* Gets or sets SO_KEEPALIVE. */
int option(const struct scene *s, enum aw_request_kind kind, int near, int value,
	   struct aw_reply *answer);
int keepalive(const struct scene *s);
int listen_at(int port);
int dial(int listener);
int setup(void **state);
int teardown(void **state);
/* What root's program may become; its failed asserts are its exit. */
void as_another(void (*act)(const struct scene *s), const struct scene *s);

#endif
