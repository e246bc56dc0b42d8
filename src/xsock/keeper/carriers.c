// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A list; who cannot be told anything is gone, and its connections with it. How these have ended it has told before.
#include "xsock/keeper/carriers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/fds.h"
#include "xsock/keeper/conns.h"

#define HEARD_MAX 1024 /* of one, more than a socket holds */

/* One for each order: a carrier of many connections has several, all with the same socket. */
struct carrier {
	struct carrier *next;
	struct aw_loop *loop;
	struct aw_source source; /* its control */
	ino_t socket; /* which that is */
	uid_t uid; /* whose */
	int count;
	uint64_t inos[AW_ORDER_INOS];
};

static struct carrier *carriers;

static bool has(const struct carrier *carrier, uint64_t ino)
{
	for (int i = 0; i < carrier->count; i++)
		if (carrier->inos[i] == ino)
			return true;
	return false;
}

/* Or another one of the same carrier. */
static bool may_tell_of(const struct carrier *carrier, uint64_t ino)
{
	const struct carrier *each = carriers;

	while (each && (each->socket != carrier->socket || !has(each, ino)))
		each = each->next;
	return each != NULL;
}

/* False: there is no more, for now or for ever. */
static bool hear_one(const struct carrier *carrier, bool *is_gone)
{
	struct aw_order order;
	ssize_t got = recv(carrier->source.fd, &order, sizeof(order), MSG_DONTWAIT);
	int error;

	if (got == (ssize_t)sizeof(order) && order.kind == AW_ORDER_ENDED &&
	    may_tell_of(carrier, order.ino)) {
		memcpy(&error, order.value, sizeof(error));
		aw_conns_note(order.ino, error);
	}
	*is_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
	return got > 0;
}

static void drop(struct carrier *carrier)
{
	struct carrier **at = &carriers;
	int control = carrier->source.fd;

	while (*at != carrier)
		at = &(*at)->next;
	*at = carrier->next;
	aw_loop_set(carrier->loop, &carrier->source, -1, 0);
	close(control);
	aw_loop_bury(carrier->loop, &carrier->source);
}

static void hear(struct carrier *carrier)
{
	bool is_gone = false;

	for (int i = 0; i < HEARD_MAX && hear_one(carrier, &is_gone); i++)
		;
	if (is_gone)
		drop(carrier);
}

void aw_carriers_hear(void)
{
	struct carrier *carrier, *next;

	for (carrier = carriers; carrier; carrier = next) {
		next = carrier->next;
		hear(carrier);
	}
}

static void ready(struct aw_source *source, uint32_t events)
{
	(void)events;
	hear(source->owner);
}

static void bury(struct aw_source *source)
{
	free(source->owner);
}

void aw_carriers_add(struct aw_loop *loop, struct aw_letter *letter)
{
	struct carrier *carrier = calloc(1, sizeof(*carrier));
	struct stat file;

	if (carrier)
		carrier->source = (struct aw_source){
			.fd = -1, .ready = ready, .bury = bury, .owner = carrier
		};
	if (!carrier || fstat(letter->fds[0], &file) != 0 ||
	    aw_loop_set(loop, &carrier->source, letter->fds[0], EPOLLIN) != 0) {
		free(carrier);
		return;
	}
	(void)aw_letter_keep(letter, 0);
	carrier->loop = loop;
	carrier->socket = file.st_ino;
	carrier->uid = letter->from.uid;
	carrier->count = letter->count - 1;
	memcpy(carrier->inos, letter->inos, sizeof(carrier->inos));
	carrier->next = carriers;
	carriers = carrier;
}

/* False: it is gone. */
static bool tell(const struct carrier *carrier, const struct aw_order *order, int fd)
{
	int err = aw_fds_send(carrier->source.fd, order, sizeof(*order), &fd, 1, MSG_DONTWAIT);

	return err != EPIPE && err != ECONNRESET;
}

bool aw_carriers_pass(const struct aw_order *order, int fd)
{
	struct carrier *carrier = carriers;

	while (carrier && !has(carrier, order->ino))
		carrier = carrier->next;
	if (!carrier || tell(carrier, order, fd))
		return carrier != NULL;
	hear(carrier);
	return false;
}

void aw_carriers_tell(const struct aw_order *order, uid_t owner, int fd)
{
	for (const struct carrier *carrier = carriers; carrier; carrier = carrier->next)
		if (carrier->uid == geteuid() || carrier->uid == owner)
			(void)tell(carrier, order, fd);
}
