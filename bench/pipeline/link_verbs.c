// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A link by verbs: header and payload are one Send, into memory that the receiver has posted. Both ends sleep while there is
// nothing to do.
#include "pipeline/link.h"

#include "worker/fail.h"

#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>

const char link_name[] = "verbs";

#define SLOT (sizeof(struct header) + BLOCK_MAX)

struct link {
	struct rdma_cm_id *id;
	char *out, *in; /* LINK_SLOTS slots each */
	struct ibv_mr *out_mr, *in_mr;
	uint64_t sent, completed;
	int held; /* the slot that the receiver looks at, or -1 */
};

static struct rdma_cm_id *listener;

/* rdma_create_qp writes to what it is given. */
static const struct ibv_qp_init_attr qp_of_link = {
	.cap = { .max_send_wr = LINK_SLOTS,
		 .max_recv_wr = LINK_SLOTS,
		 .max_send_sge = 1,
		 .max_recv_sge = 1 },
	.qp_type = IBV_QPT_RC,
	.sq_sig_all = 1,
};

static struct rdma_cm_id *make_id(const struct sockaddr_in *at, int flags, bool with_qp)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
				       .ai_qp_type = IBV_QPT_RC,
				       .ai_flags = flags },
			     *found;
	struct ibv_qp_init_attr qp = qp_of_link;
	char host[INET_ADDRSTRLEN], port[8];
	struct rdma_cm_id *id;

	inet_ntop(AF_INET, &at->sin_addr, host, sizeof(host));
	snprintf(port, sizeof(port), "%u", ntohs(at->sin_port));
	if (rdma_getaddrinfo(host, port, &hints, &found) != 0 ||
	    rdma_create_ep(&id, found, NULL, with_qp ? &qp : NULL) != 0)
		fail_errno("no RDMA endpoint at %s:%s", host, port);
	rdma_freeaddrinfo(found);
	return id;
}

static struct ibv_mr *link_memory(struct rdma_cm_id *id, char **memory)
{
	struct ibv_mr *mr;

	*memory = calloc(LINK_SLOTS, SLOT);
	mr = *memory ? rdma_reg_msgs(id, *memory, LINK_SLOTS * SLOT) : NULL;
	if (!mr)
		fail_errno("no memory for blocks");
	return mr;
}

static void post(struct link *link, int slot)
{
	if (rdma_post_recv(link->id, (void *)(intptr_t)slot, link->in + (size_t)slot * SLOT, SLOT,
			   link->in_mr) != 0)
		fail_errno("rdma_post_recv");
}

static struct link *link_make(struct rdma_cm_id *id)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		fail("out of memory");
	link->id = id;
	link->held = -1;
	link->in_mr = link_memory(id, &link->in);
	link->out_mr = link_memory(id, &link->out);
	for (int slot = 0; slot < (int)LINK_SLOTS; slot++)
		post(link, slot);
	return link;
}

void link_listen(const struct sockaddr_in *at)
{
	listener = make_id(at, RAI_PASSIVE, false);
	if (rdma_listen(listener, 4) != 0)
		fail_errno("rdma_listen");
}

struct link *link_accept(void)
{
	struct ibv_qp_init_attr qp = qp_of_link;
	struct rdma_cm_id *id;
	struct link *link;

	if (rdma_get_request(listener, &id) != 0 || rdma_create_qp(id, NULL, &qp) != 0)
		fail_errno("rdma_get_request");
	link = link_make(id);
	if (rdma_accept(id, NULL) != 0)
		fail_errno("rdma_accept");
	return link;
}

struct link *link_connect(const struct sockaddr_in *to)
{
	struct link *link = link_make(make_id(to, 0, true));

	if (rdma_connect(link->id, NULL) != 0)
		fail_errno("rdma_connect");
	return link;
}

static void take_completions(struct link *link, uint64_t under_way_max)
{
	while (link->sent - link->completed > under_way_max) {
		struct ibv_wc wc;

		if (rdma_get_send_comp(link->id, &wc) != 1)
			fail_errno("rdma_get_send_comp");
		if (wc.status != IBV_WC_SUCCESS)
			fail("a Send failed: %s", ibv_wc_status_str(wc.status));
		link->completed++;
	}
}

static char *slot_of(struct link *link)
{
	return link->out + (link->sent % LINK_SLOTS) * SLOT;
}

void *link_buffer(struct link *link)
{
	take_completions(link, LINK_SLOTS - 1);
	return slot_of(link) + sizeof(struct header);
}

void link_send(struct link *link, const struct header *header)
{
	char *slot;

	take_completions(link, LINK_SLOTS - 1);
	slot = slot_of(link);
	*(struct header *)slot = *header;
	if (rdma_post_send(link->id, NULL, slot, sizeof(*header) + header->len, link->out_mr, 0) !=
	    0)
		fail_errno("rdma_post_send");
	link->sent++;
}

bool link_recv(struct link *link, struct header *header, const void **payload)
{
	struct ibv_wc wc;
	const char *slot;

	if (link->held >= 0)
		post(link, link->held);
	link->held = -1;
	if (rdma_get_recv_comp(link->id, &wc) != 1)
		fail_errno("rdma_get_recv_comp");
	if (wc.status != IBV_WC_SUCCESS)
		return false;
	link->held = (int)wc.wr_id;
	slot = link->in + (size_t)link->held * SLOT;
	*header = *(const struct header *)slot;
	*payload = slot + sizeof(*header);
	return true;
}

void link_close(struct link *link)
{
	take_completions(link, 0);
	rdma_disconnect(link->id);
	rdma_dereg_mr(link->in_mr);
	rdma_dereg_mr(link->out_mr);
	rdma_destroy_ep(link->id);
	free(link->in);
	free(link->out);
	free(link);
}
