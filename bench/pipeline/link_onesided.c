// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A link of extended sockets (anywarp_sockets(3)): the payload is written into the receiver's memory, and the header is its note
// in the stream, which tells that it is there.
#include "pipeline/link.h"
#include "pipeline/stream.h"

#include "worker/fail.h"

#include <anywarp/sockets.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

const char link_name[] = "one-sided";

struct link {
	int fd, cq_fd;
	char *out, *in; /* LINK_SLOTS blocks each */
	struct iwarp_mr *out_mr, *in_mr;
	struct iwarp_key far; /* the peer's in */
	uint64_t sent, received; /* blocks with a payload */
	uint64_t completed; /* of those sent */
};

/* The program itself starts iWARP, when the connection is there. */
static void leave_alone(int fd)
{
	int off = IWARP_OFF;

	if (setsockopt(fd, SOL_IWARP, IWARP_MODE, &off, sizeof(off)) != 0)
		fail_errno("IWARP_MODE");
}

static struct iwarp_mr *link_memory(int fd, char **memory, int access)
{
	struct iwarp_mr *mr;

	*memory = calloc(LINK_SLOTS, BLOCK_MAX);
	mr = *memory ? iwarp_reg_mr(fd, *memory, (size_t)LINK_SLOTS * BLOCK_MAX, access) : NULL;
	if (!mr)
		fail_errno("no memory for blocks");
	return mr;
}

static struct link *link_make(int fd, int role)
{
	struct link *link = calloc(1, sizeof(*link));
	struct iwarp_key key;

	if (!link || iwarp_start(fd, role) != 0)
		fail_errno("no extended socket");
	link->fd = fd;
	link->cq_fd = iwarp_cq_fd(fd);
	link->in_mr = link_memory(fd, &link->in, IWARP_REMOTE_WRITE);
	link->out_mr = link_memory(fd, &link->out, 0);
	if (iwarp_mr_key(link->in_mr, &key) != 0)
		fail_errno("iwarp_mr_key");
	stream_write(fd, &key, sizeof(key), NULL, 0);
	if (!stream_read(fd, &link->far, sizeof(link->far)))
		fail("the other end is gone");
	return link;
}

void link_listen(const struct sockaddr_in *at)
{
	stream_listen(at, leave_alone);
}

struct link *link_accept(void)
{
	return link_make(stream_accept(), IWARP_PASSIVE);
}

struct link *link_connect(const struct sockaddr_in *to)
{
	return link_make(stream_connect(to, leave_alone), IWARP_ACTIVE);
}

static void take_completions(struct link *link, uint64_t under_way_max)
{
	struct iwarp_completion done[LINK_SLOTS];
	struct pollfd fd = { .fd = link->cq_fd, .events = POLLIN };

	while (link->sent - link->completed > under_way_max) {
		int count = iwarp_cq_poll(link->fd, done, LINK_SLOTS);

		if (count < 0)
			fail_errno("iwarp_cq_poll");
		for (int i = 0; i < count; i++) {
			if (done[i].error)
				fail("a write failed: error %d", done[i].error);
		}
		link->completed += (uint64_t)count;
		if (!count)
			poll(&fd, 1, -1);
	}
}

static size_t slot_of(uint64_t number)
{
	return (number % LINK_SLOTS) * BLOCK_MAX;
}

void *link_buffer(struct link *link)
{
	take_completions(link, LINK_SLOTS - 1);
	return link->out + slot_of(link->sent);
}

void link_send(struct link *link, const struct header *header)
{
	size_t at = slot_of(link->sent);

	if (header->len) {
		const struct iwarp_note note = { header, sizeof(*header), link->sent };

		if (iwarp_write_notify(link->out_mr, at, header->len, &link->far, at, &note) != 0)
			fail_errno("iwarp_write_notify");
		link->sent++;
	} else {
		stream_write(link->fd, header, sizeof(*header), NULL, 0);
	}
}

bool link_recv(struct link *link, struct header *header, const void **payload)
{
	if (!stream_read(link->fd, header, sizeof(*header)))
		return false;
	*payload = link->in + slot_of(link->received);
	if (header->len)
		link->received++;
	return true;
}

void link_close(struct link *link)
{
	take_completions(link, 0);
	close(link->fd);
	iwarp_dereg_mr(link->in_mr);
	iwarp_dereg_mr(link->out_mr);
	free(link->in);
	free(link->out);
	free(link);
}
