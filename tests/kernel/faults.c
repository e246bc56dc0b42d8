// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// faults ADDRESS PORT: one connection's whole life, without an SRQ and with one, step by step, again and again; in each step the kernel's first
// allocation fails, then the second, until one pass needs fewer than that. A step may end with an error, and then both sides are
// taken down; it may not hang, and what follows has to work. Prints a line for each step: what was injected, and what came of it.
// Status 1: something hung, or would not go.
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side listener, server, client;
static const char *address;
static int port;
static struct ibv_context *device;
static int fail_nth = -1;

static int open_device(void)
{
	struct ibv_device **all = ibv_get_device_list(NULL);

	device = all && all[0] ? ibv_open_device(all[0]) : NULL;
	if (all)
		ibv_free_device_list(all);
	return device ? 0 : ENODEV;
}

static int query_device(void)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	int err = ibv_query_device(device, &attr);

	return err ? err : ibv_query_port(device, 1, &port_attr);
}

static int close_device(void)
{
	struct ibv_context *closed = device;

	device = NULL;
	return closed ? ibv_close_device(closed) : 0;
}

static int bind_listener(void)
{
	return side_bind(&listener, address, port);
}

static int resolve_addr(void)
{
	return side_resolve_addr(&client, address, port);
}

static int hear_addr(void)
{
	return side_wait_event(&client, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
}

static int hear_route(void)
{
	return side_wait_event(&client, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int hear_request(void)
{
	return side_wait_event(&listener, RDMA_CM_EVENT_CONNECT_REQUEST, &server.id);
}

static int hear_established(void)
{
	int err = side_wait_event(&client, RDMA_CM_EVENT_ESTABLISHED, NULL);

	return err ? err : side_wait_event(&listener, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int client_send(void)
{
	return side_post(&client, IBV_WR_SEND, SIDE_SLOT_BYTES);
}

static int server_receive(void)
{
	return side_wait(&server, &server.received, server.received + 1);
}

static int server_send(void)
{
	return side_post(&server, IBV_WR_SEND, 1000);
}

static int client_receive(void)
{
	return side_wait(&client, &client.received, client.received + 1);
}

static int client_write(void)
{
	return side_post(&client, IBV_WR_RDMA_WRITE, SIDE_SLOT_BYTES);
}

static int client_read(void)
{
	return side_post(&client, IBV_WR_RDMA_READ, SIDE_SLOT_BYTES);
}

/* Send, Write and Read. */
static int client_complete(void)
{
	return side_wait(&client, &client.sent, 3);
}

static int hear_disconnected(void)
{
	int err = side_wait_event(&client, RDMA_CM_EVENT_DISCONNECTED, NULL);

	return err ? err : side_wait_event(&listener, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

struct step {
	const char *name;
	int (*run)(void);
	int (*of)(struct side *); /* where there is no run */
	struct side *side;
	bool destroys; /* what a library forgets where this failed is the kernel's to clean up */
};

#define OF(action, which)                                                         \
	{                                                                         \
		.name = #which " " #action, .of = side_##action, .side = &(which) \
	}
#define END(action, which)                                                         \
	{                                                                          \
		.name = #which " " #action, .of = side_##action, .side = &(which), \
		.destroys = true                                                   \
	}
#define RUN(action)                              \
	{                                        \
		.name = #action, .run = (action) \
	}

static const struct step steps[] = {
	RUN(open_device),
	RUN(query_device),
	OF(open_channel, listener),
	OF(create_id, listener),
	RUN(bind_listener),
	OF(listen, listener),
	OF(open_channel, client),
	OF(create_id, client),
	RUN(resolve_addr),
	RUN(hear_addr),
	OF(resolve_route, client),
	RUN(hear_route),
	OF(alloc_pd, client),
	OF(reg_mr, client),
	OF(create_comp, client),
	OF(create_cq, client),
	OF(create_qp, client),
	OF(post_recvs, client),
	OF(arm, client),
	OF(connect, client),
	RUN(hear_request),
	OF(alloc_pd, server),
	OF(reg_mr, server),
	OF(create_comp, server),
	OF(create_cq, server),
	OF(create_srq, server),
	OF(create_qp, server),
	OF(post_recvs, server),
	OF(limit_srq, server),
	OF(accept, server),
	RUN(hear_established),
	RUN(client_send),
	RUN(server_receive),
	RUN(server_send),
	RUN(client_receive),
	RUN(client_write),
	RUN(client_read),
	RUN(client_complete),
	OF(disconnect, client),
	RUN(hear_disconnected),
	END(destroy_qp, client),
	END(destroy_cq, client),
	END(destroy_comp, client),
	END(dereg_mr, client),
	END(dealloc_pd, client),
	END(destroy_id, client),
	END(destroy_qp, server),
	END(destroy_srq, server),
	END(destroy_id, listener),
	RUN(close_device),
};

enum {
	STEPS = sizeof(steps) / sizeof(steps[0])
};

/* Shared by the process of a pass and the one that counts. */
struct tally {
	unsigned int nth; /* under way, or done */
	unsigned int injected;
	unsigned int failed; /* the step, or one behind it */
	unsigned int timed_out;
	unsigned int stuck; /* what would not be destroyed, though nothing fails any more */
	int done; /* a pass needed no more */
};

static struct tally *tally;

static void arm_fault(unsigned int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	if (pwrite(fail_nth, text, strlen(text), 0) < 0)
		abort();
}

/* Whether the fault came. From here on nothing fails. */
static bool disarm_fault(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) < 0)
		abort();
	arm_fault(0);
	return atoi(text) == 0;
}

static int run_step(const struct step *step)
{
	return step->run ? step->run() : step->of(step->side);
}

/* The connection's life with a fault in one step. False: no fault came. */
static bool run_pass(unsigned int faulty, unsigned int nth)
{
	bool came = false;
	int err = 0;

	for (unsigned int i = 0; i < STEPS && !err; i++) {
		if (i == faulty)
			arm_fault(nth);
		err = run_step(&steps[i]);
		if (i == faulty)
			came = disarm_fault();
	}
	tally->injected += came;
	tally->failed += came && err;
	tally->timed_out += err == ETIMEDOUT;
	/* Without a fault nothing may fail. */
	tally->stuck += !came && err;
	if (err && err != ETIMEDOUT && came)
		return true;
	if (err)
		printf("%s: allocation %u: %s\n", steps[faulty].name, nth, strerror(err));
	return came;
}

/* Where the kernel has to clean up, the process ends, and another one goes on. */
static void run_passes(unsigned int faulty, bool with_srq)
{
	char path[64];
	bool came = true;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth", syscall(SYS_gettid));
	fail_nth = open(path, O_RDWR);
	while (came) {
		unsigned int failed = tally->failed;

		server.with_srq = with_srq;
		came = run_pass(faulty, ++tally->nth);
		if (steps[faulty].destroys && tally->failed > failed)
			_exit(0);
		if (side_close(&client) || side_close(&server) || side_close(&listener) ||
		    close_device())
			_exit(0);
		client = server = listener = (struct side){ 0 };
	}
	tally->done = 1;
	_exit(0);
}

static void run_process(unsigned int faulty, bool with_srq)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		run_passes(faulty, with_srq);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		printf("%s: allocation %u: the process ended with status %x\n", steps[faulty].name,
		       tally->nth, status);
		tally->stuck++;
		tally->done = 1;
	}
}

static struct tally inject_into(unsigned int faulty, bool with_srq)
{
	*tally = (struct tally){ 0 };
	while (!tally->done)
		run_process(faulty, with_srq);
	printf("%-24s injected %u failed %u timed out %u\n", steps[faulty].name, tally->injected,
	       tally->failed, tally->timed_out);
	return *tally;
}

int main(int argc, char **argv)
{
	unsigned int injected = 0, wrong = 0;

	if (argc < 3)
		return 2;
	address = argv[1];
	port = atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ibv_free_device_list(ibv_get_device_list(NULL));
	for (unsigned int i = 0; i < 2 * STEPS; i++) {
		struct tally one = inject_into(i % STEPS, i >= STEPS);

		injected += one.injected;
		wrong += one.timed_out + one.stuck;
	}
	printf("injected %u\n", injected);
	return wrong ? 1 : 0;
}
