// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/peers.h"

#include "worker/fail.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 600

static void start_child(struct peers *peers, unsigned int number);
static void await(int fd, struct peers_result *result);

void peers_start(struct peers *peers, struct session *session, peers_phase phase)
{
	struct peers_result none;

	*peers = (struct peers){ .session = session, .phase = phase };
	if (session->args.fan == FAN_NONE) {
		session->transport->connect(session, args_connections(&session->args));
		return;
	}
	for (; peers->count < session->args.peers; peers->count++)
		start_child(peers, peers->count);
	for (unsigned int i = 0; i < peers->count; i++)
		await(peers->fds[i], &none);
}

static struct peers_result run_one(struct session *session, peers_phase phase, double seconds)
{
	struct cpu before = cpu_now();
	struct peers_result result = { .moved = phase(session, seconds) };

	result.cpu = cpu_since(&before);
	return result;
}

struct peers_result peers_run(struct peers *peers, double seconds)
{
	struct peers_result all = { 0 }, one;

	if (peers->count == 0)
		return run_one(peers->session, peers->phase, seconds);
	for (unsigned int i = 0; i < peers->count; i++) {
		if (send(peers->fds[i], &seconds, sizeof(seconds), 0) != sizeof(seconds))
			fail_errno("a child process is gone: see what it printed");
	}
	for (unsigned int i = 0; i < peers->count; i++) {
		await(peers->fds[i], &one);
		all.moved.in += one.moved.in;
		all.moved.out += one.moved.out;
		all.cpu = cpu_sum(&all.cpu, &one.cpu);
	}
	return all;
}

void peers_end(struct peers *peers)
{
	for (unsigned int i = 0; i < peers->count; i++) {
		close(peers->fds[i]);
		waitpid(peers->pids[i], NULL, 0);
	}
}

/* A child's life: connect, say so, run the phases, end with the parent's socket. */
static void be_child(const struct peers *peers, int fd)
{
	struct peers_result result = { 0 };
	double seconds;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fail_after(CHILD_SECONDS, "a child process hangs");
	peers->session->transport->connect(peers->session, 1);
	for (;;) {
		if (send(fd, &result, sizeof(result), 0) != sizeof(result))
			break;
		if (recv(fd, &seconds, sizeof(seconds), MSG_WAITALL) != sizeof(seconds))
			break;
		result = run_one(peers->session, peers->phase, seconds);
	}
	_exit(0);
}

static void start_child(struct peers *peers, unsigned int number)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		fail_errno("socketpair");
	peers->pids[number] = fork();
	if (peers->pids[number] < 0)
		fail_errno("no child process number %u", number);
	if (peers->pids[number] == 0) {
		/* The older children's sockets close with the parent's ends alone. */
		for (unsigned int i = 0; i < number; i++)
			close(peers->fds[i]);
		close(ends[0]);
		be_child(peers, ends[1]);
	}
	close(ends[1]);
	peers->fds[number] = ends[0];
}

static void await(int fd, struct peers_result *result)
{
	if (recv(fd, result, sizeof(*result), MSG_WAITALL) != sizeof(*result))
		fail("a child process is gone: see what it printed");
}
