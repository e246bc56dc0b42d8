// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// post HOST PORT KIND: connects to an rping server, posts the one WR that KIND names, and prints
// what comes of it: "post ERRNO" or "wc STATUS" and "event NAME". None of them may succeed: either
// the peer cannot know the operation, or it must refuse it.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIVE_UP_SECONDS 60
#define BUFFER_OCTETS 4096
#define NOBODYS_RKEY 0x00dead00

struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t octets;
};

static const struct kind kinds[] = {
	{ "write-stag", IBV_WR_RDMA_WRITE, 64 },
	{ "read-stag", IBV_WR_RDMA_READ, 64 },
	{ "send-long", IBV_WR_SEND, BUFFER_OCTETS }, /* rping's receives have 16 octets */
	{ "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, 64 },
	{ "send-imm", IBV_WR_SEND_WITH_IMM, 64 },
	{ "cmp-swap", IBV_WR_ATOMIC_CMP_AND_SWP, 8 },
	{ "fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
	{ "atomic-write", IBV_WR_ATOMIC_WRITE, 8 },
};

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	fprintf(stderr, "no kind '%s'\n", name);
	exit(2);
}

static struct rdma_cm_id *connected(char *host, char *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(host, port, &hints, &found))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, found, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(found);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	return id;
}

static int post(struct rdma_cm_id *id, const struct kind *kind, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, kind->octets, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = kind->opcode };

	if (kind->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    kind->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.rkey = NOBODYS_RKEY;
	else
		wr.wr.rdma.rkey = NOBODYS_RKEY;
	return ibv_post_send(id->qp, &wr, &bad);
}

/* The first event after ESTABLISHED, which is still in the queue of a synchronous id. */
static void print_event(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(id->channel, &event))
		die("rdma_get_cm_event");
	printf("event %s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	static char buffer[BUFFER_OCTETS] __attribute__((aligned(8)));
	const struct kind *kind;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: post HOST PORT KIND\n");
		return 2;
	}
	alarm(GIVE_UP_SECONDS);
	kind = kind_named(argv[3]);
	id = connected(argv[1], argv[2]);
	mr = ibv_reg_mr(id->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("ibv_reg_mr");
	err = post(id, kind, mr);
	if (err) {
		printf("post %s\n", err == EOPNOTSUPP ? "EOPNOTSUPP" : strerror(err));
		rdma_disconnect(id);
		return 0;
	}
	if (rdma_get_send_comp(id, &wc) != 1)
		die("rdma_get_send_comp");
	printf("wc %s\n", ibv_wc_status_str(wc.status));
	print_event(id);
	return 0;
}
