// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The victim is the test's own program again, with other arguments and a socket to the test.
#define _GNU_SOURCE
#include "victim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	FD = 3,
	LIFE_S_MAX = 240, /* as long as the test may take */
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

extern char **environ;

static void send_hello(int fd, const struct victim_hello *hello)
{
	assert_int_equal(send(fd, hello, sizeof(*hello), MSG_NOSIGNAL), sizeof(*hello));
}

static void recv_hello(int fd, struct victim_hello *hello)
{
	assert_int_equal(recv(fd, hello, sizeof(*hello), MSG_WAITALL), sizeof(*hello));
}

void victim_start(struct victim *v, const struct victim_hello *ours, enum victim_step step,
		  int signum, unsigned int life_us)
{
	char words[3][16], *argv[] = { "victim", words[0], words[1], words[2], NULL };
	posix_spawn_file_actions_t actions;
	int fds[2];

	snprintf(words[0], sizeof(words[0]), "%d", (int)step);
	snprintf(words[1], sizeof(words[1]), "%d", signum);
	snprintf(words[2], sizeof(words[2]), "%u", life_us);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], FD);
	assert_int_equal(posix_spawn(&v->pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	send_hello(fds[0], ours);
	recv_hello(fds[0], &v->hello);
	close(fds[0]);
}

void victim_await(struct victim *v, int signum)
{
	int status;

	assert_int_equal(waitpid(v->pid, &status, WUNTRACED), v->pid);
	if (signum == SIGSTOP)
		assert_true(WIFSTOPPED(status));
	else
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signum);
}

void victim_kill(struct victim *v)
{
	assert_int_equal(kill(v->pid, SIGKILL), 0);
	victim_await(v, SIGKILL);
}

/* The victim. */

static void die_after(unsigned int life_us)
{
	struct itimerspec in = { .it_value = { life_us / 1000000, life_us % 1000000 * 1000 } };
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	timer_t timer;

	if (life_us == 0)
		return;
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &kill, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &in, NULL), 0);
}

static void on_completion(struct walker *w, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		_exit(1);
	if (wc->opcode != IBV_WC_RECV)
		return;
	walker_recv(w, 0);
	walker_post(w, IBV_WR_SEND, wc->byte_len, NULL);
}

static void serve(struct fixture *f, struct walker *w)
{
	struct pollfd fd = { .fd = f->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (;;) {
		assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
		while (ibv_poll_cq(f->cq, 1, &wc) > 0)
			on_completion(w, &wc);
		poll(&fd, 1, -1);
		if (ibv_get_cq_event(f->channel, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
	}
}

/* A QP that completes to the fixture's CQ, where one can sleep. */
static void equip(struct walker *w, struct fixture *f)
{
	w->send_cq = w->recv_cq = f->cq;
	w->qp = qp_make(f);
	w->memory = calloc(1, WALK_MEMORY);
	w->mr = ibv_reg_mr(f->pd, w->memory, WALK_MEMORY, RIGHTS);
	assert_non_null(w->mr);
}

static void step_or_end(enum victim_step now, enum victim_step end, int signum)
{
	if (now == end)
		raise(signum);
}

static void live(enum victim_step end, int signum, unsigned int life_us)
{
	static uint8_t lent[VICTIM_MEMORY];
	struct victim_hello mine, theirs;
	struct route route;
	struct walker w;
	struct ibv_mr *mr;
	void *state;

	fixture_setup(&state);
	equip(&w, state);
	mr = ibv_reg_mr(((struct fixture *)state)->pd, lent, sizeof(lent), RIGHTS);
	assert_non_null(mr);
	mine = (struct victim_hello){ (uintptr_t)lent, mr->rkey, w.qp->qp_num };
	recv_hello(FD, &theirs);
	send_hello(FD, &mine);
	die_after(life_us);
	route = route_loopback(state);
	walk_init(&w);
	walker_recv(&w, 0);
	step_or_end(VICTIM_INIT, end, signum);
	walk_rtr(&w, &route, theirs.qpn);
	step_or_end(VICTIM_RTR, end, signum);
	walk_rts(&w);
	step_or_end(VICTIM_RTS, end, signum);
	serve(state, &w);
}

bool victim_main(int argc, char **argv)
{
	if (argc != 4 || strcmp(argv[0], "victim") != 0)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(limit_s(LIFE_S_MAX));
	live((enum victim_step)atoi(argv[1]), atoi(argv[2]), (unsigned int)atoi(argv[3]));
	return true;
}
