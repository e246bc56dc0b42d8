// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// So many processes, all-to-all: every pair connects, and each end of it Writes, Sends and at last Reads,
// over and over. Whatever arrives is compared, octet by octet. Arguments: iwarp or roce, how
// many, and how many connections each pair has.
#include "mesh.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4
#define WRITE_OCTETS 4096
#define SEND_OCTETS 256
#define RECVS 2 /* a peer is one round ahead at most */
#define SECONDS_MAX 200

enum kind {
	KIND_RECV,
	KIND_WRITE,
	KIND_SEND,
	KIND_READ,
	KINDS
};

static const char *const kind_names[KINDS] = { "receive", "Write", "Send", "Read" };

/* How a process comes to its QPs. */
struct way {
	const char *persona;
	void (*connect)(struct mesh *mesh);
	void (*close)(struct mesh *mesh);
};

static const struct way ways[] = {
	{ "iwarp", mesh_connect_cm, mesh_close_cm },
	{ "roce", mesh_connect_walk, mesh_close_walk },
};

/* What peers write to, a place for each of two rounds; what is sent; what came of Sends and Reads. */
static unsigned char in[RECVS][MESH_LINKS_MAX][WRITE_OCTETS],
	out[MESH_LINKS_MAX][WRITE_OCTETS + SEND_OCTETS],
	received[MESH_LINKS_MAX][RECVS][SEND_OCTETS], fetched[MESH_LINKS_MAX][WRITE_OCTETS];
static struct ibv_mr *in_mr, *out_mr, *received_mr, *fetched_mr;

/* Of one peer: completions of own WRs, and messages, in this process's life. */
static unsigned int completed[MESH_LINKS_MAX], messages[MESH_LINKS_MAX];

static struct ibv_mr *reg(struct mesh *mesh, void *memory, size_t size, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(mesh->pd, memory, size, access);

	CHECK(mr);
	return mr;
}

void mesh_equip(struct mesh *mesh)
{
	mesh->pd = ibv_alloc_pd(mesh->verbs);
	mesh->comp_channel = ibv_create_comp_channel(mesh->verbs);
	CHECK(mesh->pd && mesh->comp_channel);
	mesh->cq = ibv_create_cq(mesh->verbs, (int)mesh_links(mesh) * MESH_WR_MAX * 2, NULL,
				 mesh->comp_channel, 0);
	CHECK(mesh->cq && ibv_req_notify_cq(mesh->cq, 0) == 0);
	in_mr = reg(mesh, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	out_mr = reg(mesh, out, sizeof(out), IBV_ACCESS_REMOTE_READ);
	received_mr = reg(mesh, received, sizeof(received), IBV_ACCESS_LOCAL_WRITE);
	fetched_mr = reg(mesh, fetched, sizeof(fetched),
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	mesh->hello.in_addr = (uintptr_t)in;
	mesh->hello.in_rkey = in_mr->rkey;
	mesh->hello.out_addr = (uintptr_t)out;
	mesh->hello.out_rkey = out_mr->rkey;
}

struct ibv_qp_init_attr mesh_qp_attr(const struct mesh *mesh)
{
	return (struct ibv_qp_init_attr){ .cap = { MESH_WR_MAX, MESH_WR_MAX, 1, 1, 0 },
					  .send_cq = mesh->cq,
					  .recv_cq = mesh->cq,
					  .qp_type = IBV_QPT_RC };
}

static void post_recv(struct mesh *mesh, unsigned int link, unsigned int place)
{
	struct ibv_sge sge = { (uintptr_t)received[link][place], SEND_OCTETS, received_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = link * KINDS + KIND_RECV,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CHECK(ibv_post_recv(mesh->qps[link], &wr, &bad) == 0);
}

void mesh_post_recvs(struct mesh *mesh, unsigned int link)
{
	for (unsigned int place = 0; place < RECVS; place++)
		post_recv(mesh, link, place);
}

/* With the parent, which hears all before it answers the first. */

static void put(int fd, const void *octets, size_t len)
{
	CHECK(send(fd, octets, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void get(int fd, void *octets, size_t len)
{
	CHECK(recv(fd, octets, len, MSG_WAITALL) == (ssize_t)len);
}

void mesh_exchange(struct mesh *mesh)
{
	put(mesh->parent, &mesh->hello, sizeof(mesh->hello));
	get(mesh->parent, mesh->hellos, mesh->size * sizeof(mesh->hello));
}

static void mesh_meet(struct mesh *mesh)
{
	char octet = 0;

	put(mesh->parent, &octet, 1);
	get(mesh->parent, &octet, 1);
}

/* What a rank sends on a link of its own in a round. */
static void fill(unsigned char *octets, size_t len, unsigned int from, unsigned int link,
		 unsigned int round)
{
	uint32_t state = (from * MESH_LINKS_MAX + link) * ROUNDS + round + 1;

	for (size_t at = 0; at < len; at++) {
		state = state * 1664525 + 1013904223;
		octets[at] = (unsigned char)(state >> 24);
	}
}

static void check(const struct mesh *mesh, const unsigned char *octets, size_t from_octet,
		  size_t len, unsigned int link, unsigned int round)
{
	unsigned char wanted[WRITE_OCTETS + SEND_OCTETS];

	fill(wanted, sizeof(wanted), mesh_peer(mesh, link), mesh_mirror(mesh, link), round);
	CHECK(memcmp(octets, wanted + from_octet, len) == 0);
}

static void post(struct mesh *mesh, unsigned int link, enum kind kind, struct ibv_send_wr wr,
		 struct ibv_sge sge)
{
	struct ibv_send_wr *bad;

	wr.wr_id = link * KINDS + kind;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK(ibv_post_send(mesh->qps[link], &wr, &bad) == 0);
}

static void post_round(struct mesh *mesh, unsigned int link, unsigned int round)
{
	const struct mesh_hello *peer = &mesh->hellos[mesh_peer(mesh, link)];
	struct ibv_sge octets = { (uintptr_t)out[link], WRITE_OCTETS, out_mr->lkey };
	struct ibv_sge message = { (uintptr_t)out[link] + WRITE_OCTETS, SEND_OCTETS, out_mr->lkey };
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE },
			   send = { .opcode = IBV_WR_SEND };

	write.wr.rdma.remote_addr =
		peer->in_addr +
		(round % RECVS * MESH_LINKS_MAX + mesh_mirror(mesh, link)) * WRITE_OCTETS;
	write.wr.rdma.rkey = peer->in_rkey;
	fill(out[link], sizeof(out[link]), mesh->rank, link, round);
	post(mesh, link, KIND_WRITE, write, octets);
	post(mesh, link, KIND_SEND, send, message);
}

/* What the peer has sent last. */
static void post_fetch(struct mesh *mesh, unsigned int link, unsigned int round)
{
	const struct mesh_hello *peer = &mesh->hellos[mesh_peer(mesh, link)];
	struct ibv_sge octets = { (uintptr_t)fetched[link], WRITE_OCTETS, fetched_mr->lkey };
	struct ibv_send_wr read = { .opcode = IBV_WR_RDMA_READ };

	(void)round;
	read.wr.rdma.remote_addr = peer->out_addr + mesh_mirror(mesh, link) * sizeof(out[0]);
	read.wr.rdma.rkey = peer->out_rkey;
	post(mesh, link, KIND_READ, read, octets);
}

static void check_fetched(struct mesh *mesh, unsigned int link, unsigned int round)
{
	check(mesh, fetched[link], 0, WRITE_OCTETS, link, round);
}

/* A message says that the Write before it is in place. */
static void on_message(struct mesh *mesh, unsigned int link, uint32_t octets)
{
	unsigned int round = messages[link]++, place = round % RECVS;

	CHECK(octets == SEND_OCTETS);
	check(mesh, received[link][place], WRITE_OCTETS, SEND_OCTETS, link, round);
	check(mesh, in[place][link], 0, WRITE_OCTETS, link, round);
	if (round + RECVS < ROUNDS)
		post_recv(mesh, link, place);
}

static void on_completion(struct mesh *mesh, const struct ibv_wc *wc)
{
	unsigned int link = (unsigned int)(wc->wr_id / KINDS), kind = wc->wr_id % KINDS;

	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "rank %u, link %u, %s: %s\n", mesh->rank, link, kind_names[kind],
			ibv_wc_status_str(wc->status));
		exit(1);
	}
	if (kind == KIND_RECV)
		on_message(mesh, link, wc->byte_len);
	else
		completed[link]++;
}

static bool poll_all(struct mesh *mesh)
{
	struct ibv_wc wc;
	bool any = false;
	int count;

	while ((count = ibv_poll_cq(mesh->cq, 1, &wc)) > 0) {
		on_completion(mesh, &wc);
		any = true;
	}
	CHECK(count == 0);
	return any;
}

static void sleep_for_event(struct mesh *mesh)
{
	struct ibv_cq *from;
	void *context;

	CHECK(ibv_get_cq_event(mesh->comp_channel, &from, &context) == 0);
	ibv_ack_cq_events(from, 1);
	CHECK(ibv_req_notify_cq(mesh->cq, 0) == 0);
}

static bool all_have(const struct mesh *mesh, const unsigned int *counts, unsigned int wanted)
{
	for (unsigned int link = 0; link < mesh_links(mesh); link++) {
		if (mesh_peer(mesh, link) != mesh->rank && counts[link] < wanted)
			return false;
	}
	return true;
}

/* So many of each peer, since the beginning. */
static void await(struct mesh *mesh, unsigned int message_count, unsigned int completion_count)
{
	while (!all_have(mesh, messages, message_count) ||
	       !all_have(mesh, completed, completion_count)) {
		if (!poll_all(mesh))
			sleep_for_event(mesh);
	}
}

/* Not everybody begins with link 0. */
static void each_peer(struct mesh *mesh, void (*act)(struct mesh *, unsigned int, unsigned int),
		      unsigned int round)
{
	for (unsigned int i = mesh->lanes; i < mesh_links(mesh); i++)
		act(mesh, (mesh->rank * mesh->lanes + i) % mesh_links(mesh), round);
}

static void talk(struct mesh *mesh)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		each_peer(mesh, post_round, round);
		await(mesh, round + 1, 2 * (round + 1));
	}
	each_peer(mesh, post_fetch, ROUNDS - 1);
	await(mesh, ROUNDS, 2 * ROUNDS + 1);
	each_peer(mesh, check_fetched, ROUNDS - 1);
	CHECK(all_have(mesh, messages, ROUNDS) && !poll_all(mesh));
}

static void run(struct mesh *mesh, const struct way *way)
{
	way->connect(mesh);
	mesh_meet(mesh);
	talk(mesh);
	mesh_meet(mesh);
	way->close(mesh);
	mesh_meet(mesh);
}

/* The parent. */

static void start(struct mesh *mesh, const struct way *way, int fds[2])
{
	pid_t parent = getpid(), child;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child > 0) {
		close(fds[1]);
		return;
	}
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent);
	give_up_after(SECONDS_MAX);
	mesh->parent = fds[1];
	run(mesh, way);
	exit(0);
}

static void say(const char *what)
{
	static struct timespec last;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (last.tv_sec)
		printf("%s: %.2f s\n", what,
		       (double)(now.tv_sec - last.tv_sec) +
			       (double)(now.tv_nsec - last.tv_nsec) / 1e9);
	last = now;
}

/* All of them are here: so many octets of each, and so many to each. */
static void gather(const int (*fds)[2], unsigned int size, char *octets, size_t len)
{
	for (unsigned int rank = 0; rank < size; rank++)
		get(fds[rank][0], octets + rank * len, len);
}

static void meet(const int (*fds)[2], unsigned int size, const char *what)
{
	char octets[MESH_MAX];

	gather(fds, size, octets, 1);
	say(what);
	for (unsigned int rank = 0; rank < size; rank++)
		put(fds[rank][0], octets, 1);
}

static void introduce(const int (*fds)[2], unsigned int size)
{
	static struct mesh_hello hellos[MESH_MAX];

	gather(fds, size, (char *)hellos, sizeof(hellos[0]));
	say("objects");
	for (unsigned int rank = 0; rank < size; rank++)
		put(fds[rank][0], hellos, size * sizeof(hellos[0]));
}

static void expect_success(unsigned int size)
{
	for (unsigned int i = 0; i < size; i++) {
		int status;

		CHECK(wait(&status) > 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static const struct way *way_named(const char *persona)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(ways[i].persona, persona))
			return &ways[i];
	}
	return NULL;
}

/* Each link is a socket. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

int main(int argc, char **argv)
{
	static struct mesh mesh;
	int fds[MESH_MAX][2];
	const struct way *way = argc == 4 ? way_named(argv[1]) : NULL;

	CHECK(way);
	mesh.size = (unsigned int)strtoul(argv[2], NULL, 10);
	mesh.lanes = (unsigned int)strtoul(argv[3], NULL, 10);
	CHECK(mesh.size > 1 && mesh.size <= MESH_MAX && mesh.lanes > 0);
	CHECK(mesh.lanes <= MESH_LINKS_MAX / mesh.size);
	CHECK(setenv("ANYWARP_PERSONA", way->persona, 1) == 0);
	raise_fd_limit();
	give_up_after(SECONDS_MAX);
	say("");
	for (mesh.rank = 0; mesh.rank < mesh.size; mesh.rank++)
		start(&mesh, way, fds[mesh.rank]);
	introduce(fds, mesh.size);
	meet(fds, mesh.size, "connections");
	meet(fds, mesh.size, "traffic");
	meet(fds, mesh.size, "end");
	expect_success(mesh.size);
	return 0;
}
