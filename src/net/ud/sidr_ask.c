// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client's side of SIDR: sends the request again, ever more slowly, until a reply comes or a
// minute is over.
#include "net/base/io_now.h"
#include "net/ud/sidr.h"

#include "net/progress/watch.h"
#include "wire/sidr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define WAIT_MS_MIN 100
#define WAIT_MS_MAX 2000
#define REFUSALS_MAX 3 /* the server may be about to start */

struct aw_sidr_ask {
	struct aw_watch watch; /* must be first */
	/* fixed after start */
	aw_sidr_ask_fn *fn;
	void *arg;
	uint64_t id;
	size_t len;
	uint8_t octets[SIDR_MAX];
	/* only for the progress thread */
	uint32_t tries, refusals, wait_ms;
	bool done;
};

static void on_event(struct aw_watch *w, uint32_t events);

static void release(struct aw_watch *w)
{
	struct aw_sidr_ask *ask = (struct aw_sidr_ask *)w;

	aw_close_now(w->fd);
	free(ask);
}

int aw_sidr_ask(int fd, const void *pd, uint8_t pd_len, aw_sidr_ask_fn *fn, void *arg,
		struct aw_sidr_ask **started)
{
	struct aw_sidr_ask *ask = calloc(1, sizeof(*ask));
	struct sidr_msg msg = { .kind = SIDR_REQUEST, .pd = pd, .pd_len = pd_len };
	int err;

	if (!ask)
		return ENOMEM;
	if (getrandom(&msg.id, sizeof(msg.id), 0) != sizeof(msg.id)) {
		free(ask);
		return EIO;
	}
	ask->id = msg.id;
	ask->len = sidr_build(&msg, ask->octets);
	ask->fn = fn;
	ask->arg = arg;
	ask->wait_ms = WAIT_MS_MIN;
	/* The progress thread may end the ask before this returns. */
	*started = ask;
	err = aw_watch_add(&ask->watch, fd, EPOLLIN, on_event, release);
	if (err)
		free(ask);
	else
		aw_watch_deadline(&ask->watch, 1);
	return err;
}

void aw_sidr_ask_destroy(struct aw_sidr_ask *ask)
{
	aw_watch_remove(&ask->watch);
}

static void finish(struct aw_sidr_ask *ask, int err, const struct aw_sidr_answer *answer)
{
	ask->done = true;
	aw_watch_events(&ask->watch, 0);
	ask->fn(ask->arg, err, answer);
}

/* Handles the network's error for this datagram or an earlier one. True: the ask has ended. */
static bool is_over(struct aw_sidr_ask *ask, int err)
{
	if (err == EAGAIN || err == EINTR || err == ENOBUFS)
		return false;
	if (err == ECONNREFUSED && ++ask->refusals < REFUSALS_MAX)
		return false;
	finish(ask, err, NULL);
	return true;
}

/* A connected socket receives only the peer's datagrams; only a reply to this request counts. */
static void read_answer(struct aw_sidr_ask *ask)
{
	uint8_t octets[SIDR_MAX + 1];
	ssize_t n = aw_recv_now(ask->watch.fd, octets, sizeof(octets), 0);
	struct sidr_msg msg;

	if (n < 0) {
		is_over(ask, errno);
		return;
	}
	if (!sidr_parse(octets, (size_t)n, &msg) || msg.kind != SIDR_REPLY || msg.id != ask->id)
		return;
	const struct aw_sidr_answer answer = { msg.status, msg.qpn, msg.qkey, msg.pd, msg.pd_len };

	finish(ask, 0, &answer);
}

static void on_event(struct aw_watch *w, uint32_t events)
{
	struct aw_sidr_ask *ask = (struct aw_sidr_ask *)w;

	if (!ask->done && events & ~AW_WATCH_TIMEOUT)
		read_answer(ask);
	if (ask->done || !(events & AW_WATCH_TIMEOUT))
		return;

	/* The request is sent for the first time, or again. */
	if (ask->tries++ == AW_SIDR_TRIES_MAX) {
		finish(ask, ETIMEDOUT, NULL);
		return;
	}
	if (aw_send_now(ask->watch.fd, ask->octets, ask->len) < 0 && is_over(ask, errno))
		return;
	aw_watch_deadline(&ask->watch, ask->wait_ms);
	ask->wait_ms = ask->wait_ms * 2 < WAIT_MS_MAX ? ask->wait_ms * 2 : WAIT_MS_MAX;
}
