// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of sockets, for the links that have one.
#ifndef PIPELINE_STREAM_H
#define PIPELINE_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* prepare, unless NULL, is called with each socket before it connects or listens. */
void stream_listen(const struct sockaddr_in *at, void (*prepare)(int fd));
int stream_accept(void);
int stream_connect(const struct sockaddr_in *to, void (*prepare)(int fd));

/* False at the end of the stream. */
bool stream_read(int fd, void *to, size_t len);

/* Two pieces by one call, as long as the connection takes them so. */
void stream_write(int fd, const void *head, size_t head_len, const void *body, size_t body_len);

#endif
