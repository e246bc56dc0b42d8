// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tests in short what anywarp is for: this process connects to a child over loopback by rdma_cm, and sends it a message. Each is
// a process with one connection, as most programs are, and needs no more of its limits. The child begins before any library
// is loaded. The alarm of doctor_probe.c ends a blocked call of this process, and the child with it.
#define _GNU_SOURCE // pipe2
#include "cli/doctor.h"

#include "cli/cli.h"
#include "cli/finding.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINK_BUG "run it with ANYWARP_LOG=debug; report it as a bug of anywarp"
#define LINK_ADDRESS "127.0.0.1"
#define POLLS_MAX 100000000L
#define CHILD_SECONDS_MAX 1 // for the child to tell of its own failure, where this end has failed

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
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	__typeof__(&ibv_dereg_mr) dereg_mr;
};

// The state of one end; the finding names the first step that failed.
struct link_end {
	const char *name;
	struct link_calls calls;
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

static bool find_calls(struct link_calls *calls)
{
	bool found = dlopen(CLI_RDMACM_LIB, RTLD_NOW | RTLD_GLOBAL);

	calls->getaddrinfo = call_named("rdma_getaddrinfo", &found);
	calls->freeaddrinfo = call_named("rdma_freeaddrinfo", &found);
	calls->create_ep = call_named("rdma_create_ep", &found);
	calls->destroy_ep = call_named("rdma_destroy_ep", &found);
	calls->listen = call_named("rdma_listen", &found);
	calls->get_src_port = call_named("rdma_get_src_port", &found);
	calls->get_request = call_named("rdma_get_request", &found);
	calls->connect = call_named("rdma_connect", &found);
	calls->accept = call_named("rdma_accept", &found);
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
		  end->calls.getaddrinfo(LINK_ADDRESS, port, &hints, &found) == 0))
		return false;
	created = end->calls.create_ep(&end->id, found, NULL, &attr) == 0;
	step(end, "rdma_create_ep", created);
	end->calls.freeaddrinfo(found);
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

static void receive_message(struct link_end *end)
{
	char buffer[sizeof(message)] = "";
	struct ibv_mr *mr =
		end->calls.reg_mr(end->id->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = sizeof(buffer) };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	if (!step(end, "ibv_reg_mr", mr))
		return;
	sge.lkey = mr->lkey;
	if (step(end, "ibv_post_recv", ibv_post_recv(end->id->qp, &wr, &bad) == 0) &&
	    step(end, "rdma_accept", end->calls.accept(end->id, NULL) == 0) &&
	    one_completion(end, end->id->recv_cq)) {
		errno = EIO;
		step(end, "the message received", !memcmp(buffer, message, sizeof(message)));
	}
	end->calls.dereg_mr(mr);
}

// Prints the failure, if there was one, while the other end still sees the connection.
static bool report(const struct link_end *end)
{
	if (end->failed_step)
		aw_finding_print(FINDING_FAIL, DOCTOR_CONNECTION,
				 aw_doctor_remedy(end->error, LINK_BUG),
				 "over %s, %s: %s failed: %s", LINK_ADDRESS, end->name,
				 end->failed_step, strerror(end->error));
	return !end->failed_step;
}

// The child: tells its port, and takes one message. Returns the exit status.
static int serve(struct link_end *end, int port_fd)
{
	struct rdma_cm_id *listener;
	in_port_t port;
	bool told;

	if (!create_ep(end, RAI_PASSIVE | RAI_NUMERICHOST) ||
	    !step(end, "rdma_listen", end->calls.listen(end->id, 1) == 0))
		return report(end) ? CLI_OK : CLI_FAILED;
	port = end->calls.get_src_port(end->id);
	told = write(port_fd, &port, sizeof(port)) == sizeof(port);
	close(port_fd);
	listener = end->id;
	if (told && step(end, "rdma_get_request", end->calls.get_request(listener, &end->id) == 0))
		receive_message(end);
	return report(end) ? CLI_OK : CLI_FAILED;
}

// The parent: connects, and sends the message. The end of the pipe without a port: the child has failed.
static bool connect_to(struct link_end *end, int port_fd)
{
	struct ibv_sge sge = { .addr = (uintptr_t)message, .length = sizeof(message) };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	};
	in_port_t port = 0;
	bool told = read(port_fd, &port, sizeof(port)) == sizeof(port);

	close(port_fd);
	end->port = ntohs(port);
	return told && create_ep(end, RAI_NUMERICHOST) &&
	       step(end, "rdma_connect", end->calls.connect(end->id, NULL) == 0) &&
	       step(end, "ibv_post_send", ibv_post_send(end->id->qp, &wr, &bad) == 0) &&
	       one_completion(end, end->id->send_cq);
}

// A child that has failed has said so.
static bool judge(const struct link_end *end, bool connected, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		return false;
	if (!connected && end->failed_step)
		return report(end);
	if (!connected || status != 0) {
		aw_finding_print(FINDING_FAIL, DOCTOR_CONNECTION, LINK_BUG,
				 "the process that accepts died of signal %d", WTERMSIG(status));
		return false;
	}
	aw_finding_print(FINDING_OK, DOCTOR_CONNECTION, NULL,
			 "two ends connected over %s and passed a message", LINK_ADDRESS);
	return true;
}

bool aw_doctor_link(void)
{
	const struct timespec timeout = { .tv_sec = CHILD_SECONDS_MAX };
	struct link_end end = { .name = "connecting" };
	bool connected, right;
	sigset_t child_ends;
	int status = 0;
	pid_t child;
	int fds[2];

	sigemptyset(&child_ends);
	sigaddset(&child_ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ends, NULL);
	if (pipe2(fds, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		aw_finding_print(FINDING_FAIL, DOCTOR_CONNECTION, aw_doctor_remedy(errno, LINK_BUG),
				 "cannot begin another process: %s", strerror(errno));
		return false;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		end.name = "accepting";
		_exit(find_calls(&end.calls) ? serve(&end, fds[1]) : CLI_OK);
	}
	close(fds[1]);
	if (!find_calls(&end.calls)) {
		aw_finding_print(FINDING_FAIL, DOCTOR_CONNECTION, LINK_BUG, "a call is missing");
		return false;
	}
	connected = connect_to(&end, fds[0]);
	// A child that waits for this end is killed.
	if (!connected && sigtimedwait(&child_ends, NULL, &timeout) < 0)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	right = judge(&end, connected, status);
	if (end.id)
		end.calls.destroy_ep(end.id);
	return right;
}
