// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A link that is a TCP connection: a header, and behind it the payload.
#include "pipeline/link.h"
#include "pipeline/stream.h"

#include "worker/fail.h"

#include <stdlib.h>
#include <unistd.h>

const char link_name[] = "tcp";

struct link {
	int fd;
	uint64_t out[BLOCK_MAX / sizeof(uint64_t)];
	uint64_t in[BLOCK_MAX / sizeof(uint64_t)];
};

static struct link *link_make(int fd)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		fail("out of memory");
	link->fd = fd;
	return link;
}

void link_listen(const struct sockaddr_in *at)
{
	stream_listen(at, NULL);
}

struct link *link_accept(void)
{
	return link_make(stream_accept());
}

struct link *link_connect(const struct sockaddr_in *to)
{
	return link_make(stream_connect(to, NULL));
}

void *link_buffer(struct link *link)
{
	return link->out;
}

void link_send(struct link *link, const struct header *header)
{
	stream_write(link->fd, header, sizeof(*header), link->out, header->len);
}

bool link_recv(struct link *link, struct header *header, const void **payload)
{
	if (!stream_read(link->fd, header, sizeof(*header)))
		return false;
	if (header->len > BLOCK_MAX)
		fail("a block of %u octets", header->len);
	*payload = link->in;
	return stream_read(link->fd, link->in, header->len);
}

void link_close(struct link *link)
{
	close(link->fd);
	free(link);
}
