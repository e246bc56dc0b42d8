// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many QPs on one CQ, or with mode=epoll on a CQ each, with one short message under way on each. Every half send queue one post
// is signalled, so that its slots come back.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <stdlib.h>

#define POLLED_MAX 16

/* By mode=epoll the messages are Writes with immediate. */
static void post(const struct session *session, struct verbs_link *link)
{
	bool writes = session->args.mode == MODE_EPOLL;
	const struct verbs_shape *shape = &verbs.shape;
	bool signalled = ++link->posted >= shape->send_wr / 2;

	if (signalled)
		link->posted = 0;
	verbs_post(link, writes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, verbs.message_octets,
		   signalled);
}

/* The link on which a message came, with a receive posted for the next; NULL: a post completed. */
static struct verbs_link *received(const struct ibv_wc *wc)
{
	struct verbs_link *link = &verbs.links[wc->wr_id];

	if (wc->opcode != IBV_WC_RECV && wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return NULL;
	verbs_post_receive(link);
	return link;
}

static uint64_t ask(const struct session *session, struct verbs_link *link)
{
	uint64_t now = clock_ns();

	post(session, link);
	return now;
}

static int wait_some(const struct session *session, struct ibv_wc *wcs)
{
	enum mode mode = (enum mode)session->args.mode;

	if (mode == MODE_EPOLL)
		return verbs_epoll_wait(wcs);
	return verbs_wait(session, &verbs.lanes[0], mode, POLLED_MAX, wcs);
}

/* One last message, marked, on the first connection when all others are through. */
static void ask_last(const struct session *session)
{
	struct verbs_link *link = &verbs.links[0];
	uint8_t *mark = link->out + session->args.size - 1;
	struct ibv_wc wcs[VERBS_WCS_MAX];
	bool answered = false;

	*mark = LAST_OCTET;
	ask(session, link);
	while (!answered) {
		int found = wait_some(session, wcs);

		for (int i = 0; i < found; i++)
			answered |= received(&wcs[i]) != NULL;
	}
	*mark = 0;
}

void verbs_ask_all(struct session *session, const struct until *until, struct stats *stats)
{
	uint64_t *asked_ns = calloc(verbs.count, sizeof(*asked_ns));
	uint64_t under_way = verbs.count, done = 0;
	struct ibv_wc wcs[VERBS_WCS_MAX];

	if (!asked_ns)
		fail("no memory for %zu connections", (size_t)verbs.count);
	for (uint64_t i = 0; i < verbs.count; i++)
		asked_ns[i] = ask(session, &verbs.links[i]);
	while (under_way > 0) {
		int found = wait_some(session, wcs);

		for (int i = 0; i < found; i++) {
			struct verbs_link *link = received(&wcs[i]);
			uint64_t now;

			if (!link)
				continue;
			now = clock_ns();
			stats_add(stats, now - asked_ns[link->number]);
			if (until_last(until, done++, now))
				under_way--;
			else
				asked_ns[link->number] = ask(session, link);
		}
	}
	ask_last(session);
	free(asked_ns);
}

void verbs_answer_all(struct session *session)
{
	struct ibv_wc wcs[VERBS_WCS_MAX];
	bool last = false;

	while (!last) {
		int found = wait_some(session, wcs);

		for (int i = 0; i < found; i++) {
			struct verbs_link *link = received(&wcs[i]);

			if (!link)
				continue;
			last |= link->in[session->args.size - 1] == LAST_OCTET;
			post(session, link);
		}
	}
}
