// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tests in short what anywarp is for: two ends in this process connect over loopback by rdma_cm, and one
// sends a message to the other. The alarm of doctor_probe.c ends a blocked call.
#include "cli/doctor.h"

#include "cli/finding.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINK_WHAT "connection"
#define LINK_BUG "run it with ANYWARP_LOG=debug; report it as a bug of anywarp"
#define LINK_ADDRESS "127.0.0.1"
#define POLLS_MAX 100000000L

static const char message[] = "one message of anywarp doctor";

// The calls that the two ends make.
struct link_calls {
	__typeof__(&rdma_getaddrinfo) getaddrinfo;
	__typeof__(&rdma_freeaddrinfo) freeaddrinfo;
	__typeof__(&rdma_create_ep) create_ep;
	__typeof__(&rdma_destroy_ep) destroy_ep;
	__typeof__(&rdma_listen) listen;
	__typeof__(&rdma_get_src_port) get_src_port;
	__typeof__(&rdma_get_request) get_request;
	__typeof__(&rdma_connect) connect;
	__typeof__(&rdma_accept) accept;
	__typeof__(&rdma_disconnect) disconnect;
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	__typeof__(&ibv_dereg_mr) dereg_mr;
};

// The state of one end; the finding names the first step that failed.
struct link_end {
	const struct link_calls *calls;
	struct rdma_cm_id *id;
	in_port_t port;
	const char *failed_step; // NULL while all is well
	int error;
};

static void *call_named(const char *name, bool *all_found)
{
	void *call = dlsym(RTLD_DEFAULT, name);

	*all_found = *all_found && call;
	return call;
}

static bool find_calls(void *rdmacm, struct link_calls *calls)
{
	bool found = rdmacm;

	calls->getaddrinfo = call_named("rdma_getaddrinfo", &found);
	calls->freeaddrinfo = call_named("rdma_freeaddrinfo", &found);
	calls->create_ep = call_named("rdma_create_ep", &found);
	calls->destroy_ep = call_named("rdma_destroy_ep", &found);
	calls->listen = call_named("rdma_listen", &found);
	calls->get_src_port = call_named("rdma_get_src_port", &found);
	calls->get_request = call_named("rdma_get_request", &found);
	calls->connect = call_named("rdma_connect", &found);
	calls->accept = call_named("rdma_accept", &found);
	calls->disconnect = call_named("rdma_disconnect", &found);
	calls->reg_mr = call_named("ibv_reg_mr", &found);
	calls->dereg_mr = call_named("ibv_dereg_mr", &found);
	return found;
}

// Notes the first failure of an end. Returns went_well.
static bool step(struct link_end *end, const char *name, bool went_well)
{
	if (went_well)
		return true;
	if (!end->failed_step) {
		end->failed_step = name;
		end->error = errno;
	}
	return false;
}

static bool create_ep(struct link_end *end, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = sizeof(message) },
	};
	struct rdma_addrinfo *found;
	char port[8];
	bool created;

	snprintf(port, sizeof(port), "%u", end->port);
	if (!step(end, "rdma_getaddrinfo",
		  end->calls->getaddrinfo(LINK_ADDRESS, port, &hints, &found) == 0))
		return false;
	created = end->calls->create_ep(&end->id, found, NULL, &attr) == 0;
	step(end, "rdma_create_ep", created);
	end->calls->freeaddrinfo(found);
	return created;
}

// Polls until one work completion comes; the alarm of the probe bounds the wait as well.
static bool one_completion(struct link_end *end, struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	int count = 0;

	for (long polls = 0; count == 0 && polls < POLLS_MAX; polls++)
		count = ibv_poll_cq(cq, 1, &wc);
	errno = EIO;
	return step(end, "the completion", count == 1 && wc.status == IBV_WC_SUCCESS);
}

static bool send_message(struct link_end *end)
{
	struct ibv_sge sge = { .addr = (uintptr_t)message, .length = sizeof(message) };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	};

	return step(end, "ibv_post_send", ibv_post_send(end->id->qp, &wr, &bad) == 0) &&
	       one_completion(end, end->id->send_cq);
}

static void *run_client(void *argument)
{
	struct link_end *end = argument;

	if (create_ep(end, RAI_NUMERICHOST) &&
	    step(end, "rdma_connect", end->calls->connect(end->id, NULL) == 0))
		send_message(end);
	return NULL;
}

static bool accept_and_receive(struct link_end *end, struct ibv_mr *mr, char *buffer, size_t size)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = size, .lkey = mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	memset(buffer, 0, size);
	if (!step(end, "ibv_post_recv", ibv_post_recv(end->id->qp, &wr, &bad) == 0) ||
	    !step(end, "rdma_accept", end->calls->accept(end->id, NULL) == 0) ||
	    !one_completion(end, end->id->recv_cq))
		return false;
	errno = EIO;
	return step(end, "the message received", !memcmp(buffer, message, sizeof(message)));
}

static void run_server(struct link_end *end)
{
	char buffer[sizeof(message)];
	struct ibv_mr *mr =
		end->calls->reg_mr(end->id->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);

	if (!step(end, "ibv_reg_mr", mr))
		return;
	accept_and_receive(end, mr, buffer, sizeof(buffer));
	end->calls->dereg_mr(mr);
}

static void close_end(struct link_end *end)
{
	if (!end->id)
		return;
	if (!end->failed_step)
		end->calls->disconnect(end->id);
	end->calls->destroy_ep(end->id);
}

// Runs the client in a thread while this one serves.
static void connect_both(struct link_end *listener, struct link_end *server,
			 struct link_end *client)
{
	pthread_t thread;

	client->port = ntohs(listener->calls->get_src_port(listener->id));
	if (!step(listener, "pthread_create",
		  pthread_create(&thread, NULL, run_client, client) == 0))
		return;
	if (step(server, "rdma_get_request",
		 server->calls->get_request(listener->id, &server->id) == 0))
		run_server(server);
	pthread_join(thread, NULL);
	close_end(client);
	close_end(server);
}

static bool report(const struct link_end *end, const char *name)
{
	if (!end->failed_step)
		return true;
	aw_finding_print(FINDING_FAIL, LINK_WHAT, LINK_BUG, "over %s, %s: %s failed: %s",
			 LINK_ADDRESS, name, end->failed_step, strerror(end->error));
	return false;
}

void aw_doctor_link(void *rdmacm)
{
	struct link_calls calls;
	struct link_end listener = { .calls = &calls };
	struct link_end server = { .calls = &calls }, client = { .calls = &calls };
	bool all_well;

	if (!find_calls(rdmacm, &calls)) {
		aw_finding_print(FINDING_FAIL, LINK_WHAT, LINK_BUG, "a call is missing");
		return;
	}
	if (create_ep(&listener, RAI_PASSIVE | RAI_NUMERICHOST) &&
	    step(&listener, "rdma_listen", calls.listen(listener.id, 1) == 0))
		connect_both(&listener, &server, &client);
	if (listener.id)
		calls.destroy_ep(listener.id);
	all_well = report(&listener, "listening");
	all_well = report(&client, "connecting") && all_well;
	all_well = report(&server, "accepting") && all_well;
	if (all_well)
		aw_finding_print(FINDING_OK, LINK_WHAT, NULL,
				 "two ends connected over %s and passed a message", LINK_ADDRESS);
}
