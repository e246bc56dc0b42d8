// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end that is connected to: it echoes Sends and lends each client a slot of memory, whatever
// becomes of the client, and says on SIGUSR1 what it holds.
#include "mortal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SLOTS 64
#define RECVS 4

struct peer {
	struct rdma_cm_id *id; /* NULL: free */
	struct ibv_mr *mr;
	unsigned char *in, *out; /* RECVS messages each */
	struct ibv_mr *in_mr, *out_mr;
};

static unsigned char slots[SLOTS][SLOT_OCTETS];
static struct peer peers[SLOTS];

static struct {
	unsigned int accepted, refused, served;
} counts;

static unsigned char *message(unsigned char *buffer, unsigned int i)
{
	return buffer + (size_t)i * MESSAGE_MAX;
}

static int post_recv(struct peer *peer, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)message(peer->in, i), MESSAGE_MAX, peer->in_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)(peer - peers) * RECVS + i,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return ibv_post_recv(peer->id->qp, &wr, &bad);
}

static void free_peer(struct peer *peer)
{
	if (peer->id && peer->id->qp)
		rdma_destroy_qp(peer->id);
	if (peer->mr)
		CHECK(ibv_dereg_mr(peer->mr) == 0);
	if (peer->in_mr)
		CHECK(ibv_dereg_mr(peer->in_mr) == 0);
	if (peer->out_mr)
		CHECK(ibv_dereg_mr(peer->out_mr) == 0);
	free(peer->in);
	free(peer->out);
	if (peer->id)
		CHECK(rdma_destroy_id(peer->id) == 0);
	*peer = (struct peer){ 0 };
}

/* Everything a client needs; false when the machine has no more to give. */
static bool equip(struct peer *peer)
{
	struct ibv_qp_init_attr attr = mortal_qp_attr();
	size_t octets = (size_t)RECVS * MESSAGE_MAX;

	peer->in = malloc(octets);
	peer->out = malloc(octets);
	if (!peer->in || !peer->out || rdma_create_qp(peer->id, mortal.pd, &attr))
		return false;
	peer->mr = ibv_reg_mr(mortal.pd, slots[peer - peers], SLOT_OCTETS,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ);
	peer->in_mr = ibv_reg_mr(mortal.pd, peer->in, octets, IBV_ACCESS_LOCAL_WRITE);
	peer->out_mr = ibv_reg_mr(mortal.pd, peer->out, octets, 0);
	if (!peer->mr || !peer->in_mr || !peer->out_mr)
		return false;
	for (unsigned int i = 0; i < RECVS; i++)
		CHECK(post_recv(peer, i) == 0);
	return true;
}

static struct peer *free_place(void)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (!peers[i].id)
			return &peers[i];
	}
	return NULL;
}

static struct peer *peer_of(const struct rdma_cm_id *id)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (peers[i].id == id)
			return &peers[i];
	}
	return NULL;
}

static void refuse(struct rdma_cm_id *id)
{
	counts.refused++;
	rdma_reject(id, NULL, 0);
	CHECK(rdma_destroy_id(id) == 0);
}

static void on_request(struct rdma_cm_id *id)
{
	struct peer *peer = free_place();
	struct offer offer;
	struct rdma_conn_param param = { .private_data = &offer,
					 .private_data_len = sizeof(offer),
					 .responder_resources = 4,
					 .initiator_depth = 4 };

	if (!peer) {
		refuse(id);
		return;
	}
	peer->id = id;
	if (!equip(peer)) {
		counts.refused++;
		rdma_reject(id, NULL, 0);
		free_peer(peer);
		return;
	}
	offer = (struct offer){ (uintptr_t)slots[peer - peers], peer->mr->rkey };
	counts.accepted++;
	/* The client may be dead by now. */
	if (rdma_accept(id, &param))
		free_peer(peer);
}

static void on_server_event(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(mortal.channel, &event)) {
		CHECK(errno == EAGAIN || errno == ENOMEM || errno == EMFILE);
		return;
	}
	type = event->event;
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_request(id);
	else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR ||
		 type == RDMA_CM_EVENT_UNREACHABLE)
		free_peer(peer_of(id));
}

static void echo(struct peer *peer, unsigned int i, uint32_t octets)
{
	struct ibv_sge sge = { (uintptr_t)message(peer->out, i), octets, peer->out_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = UINT64_MAX,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	memcpy(message(peer->out, i), message(peer->in, i), octets);
	CHECK(post_recv(peer, i) == 0);
	CHECK(ibv_post_send(peer->id->qp, &wr, &bad) == 0);
	counts.served++;
}

static void serve_completions(void)
{
	struct ibv_cq *from;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(mortal.comp_channel, &from, &context) == 0) {
		ibv_ack_cq_events(from, 1);
		CHECK(ibv_req_notify_cq(mortal.cq, 0) == 0);
	}
	while (ibv_poll_cq(mortal.cq, 1, &wc) > 0) {
		struct peer *peer = &peers[(wc.wr_id / RECVS) % SLOTS];

		if (wc.status == IBV_WC_SUCCESS && wc.wr_id != UINT64_MAX)
			echo(peer, wc.wr_id % RECVS, wc.byte_len);
	}
}

static void set_nonblocking(int fd)
{
	CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

static size_t address_space_octets(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t pages;

	CHECK(file && fscanf(file, "%zu", &pages) == 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* What the machine gives from now on. */
static void set_limits(void)
{
	struct rlimit limit;

	if (mortal.fds_max) {
		limit = (struct rlimit){ mortal.fds_max, mortal.fds_max };
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	if (mortal.as_headroom_kib) {
		limit.rlim_cur = limit.rlim_max =
			address_space_octets() + (size_t)mortal.as_headroom_kib * 1024;
		CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	}
}

static unsigned int connections(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		count += peers[i].id != NULL;
	return count;
}

/* A signal that says how much is held when asked. */
static int open_question(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void answer(int question)
{
	struct signalfd_siginfo info;

	CHECK(read(question, &info, sizeof(info)) == sizeof(info));
	printf("held fds %d threads %d connections %u accepted %u refused %u served %u\n",
	       mortal_entries("/proc/self/fd"), mortal_entries("/proc/self/task"), connections(),
	       counts.accepted, counts.refused, counts.served);
}

static struct rdma_cm_id *listen_at(const char *address, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct ibv_context **devices = rdma_get_devices(NULL); /* a listener on loopback has none */
	struct rdma_cm_id *listener;

	CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
	CHECK(rdma_create_id(mortal.channel, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0);
	CHECK(devices && devices[0]);
	mortal_create_cq(devices[0]);
	rdma_free_devices(devices);
	CHECK(rdma_listen(listener, 128) == 0);
	return listener;
}

void mortal_serve(const char *address, uint16_t port)
{
	int question = open_question();
	struct rdma_cm_id *listener = listen_at(address, port);

	set_nonblocking(mortal.channel->fd);
	set_nonblocking(mortal.comp_channel->fd);
	set_limits();
	printf("port %u\n", ntohs(rdma_get_src_port(listener)));
	mortal_start_dying();
	for (;;) {
		struct pollfd fds[] = { { question, POLLIN, 0 },
					{ mortal.channel->fd, POLLIN, 0 },
					{ mortal.comp_channel->fd, POLLIN, 0 } };

		CHECK(poll(fds, 3, -1) > 0 || errno == EINTR);
		if (fds[0].revents)
			answer(question);
		if (fds[1].revents)
			on_server_event();
		if (fds[2].revents)
			serve_completions();
	}
}
