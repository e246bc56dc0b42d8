// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The control connection: lines of text over TCP by which the two ends of a session agree on what is
// measured and when. "error TEXT" from the other end ends this one.
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define CONTROL_LINE_MAX 768

struct control {
	int fd;
	size_t used; /* bytes of the next line that are here already */
	char input[CONTROL_LINE_MAX];
};

/* A numeric address with its port. False when it is none. */
bool control_address(const char *address, const char *port, struct sockaddr_storage *at)
	__attribute__((warn_unused_result));
socklen_t control_address_size(const struct sockaddr_storage *at);
void control_set_port(struct sockaddr_storage *at, unsigned int port);
unsigned int control_port(const struct sockaddr_storage *at);

/* A listening TCP socket. port 0 in at: the kernel picks one, which is written into it. */
int control_listen(struct sockaddr_storage *at, int backlog);

void control_accept(struct control *control, int listener);
void control_connect(struct control *control, const struct sockaddr_storage *at);

/* A TCP socket for what is measured, connected to the peer's. */
int control_connect_data(const struct sockaddr_storage *at);

/* Sends a line; the format has no newline. */
void control_send(struct control *control, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Receives a line, into CONTROL_LINE_MAX bytes. */
void control_receive(struct control *control, char *line);

/* Receives a line that begins with this word; the part behind the word's blank goes into rest. */
void control_expect(struct control *control, const char *word, char *rest);

/* Fails when the other end is gone. Never waits: for loops that would otherwise wait for ever. */
void control_check(const struct control *control);

#endif
