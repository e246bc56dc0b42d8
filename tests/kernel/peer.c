// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// peer: clients and servers for a storm, a process each, forked at once: starting programs takes long where the storm
// blows. A line of input is 'serve ADDRESS PORT' or 'use ADDRESS PORT ROUNDS' (0: for ever); the answer is the new process's
// number. Its exit status is printed when it ends: 'PID STATUS'.
#include "side.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CONNECTIONS_MAX = 16,
	ENDED_WELL = 0,
	ENDED_EARLY = 2, /* the connection, the peer or the device went */
	WRONG_BYTES = 3, /* which nobody may see */
	LINE_MAX_BYTES = 128,
	WAIT_MS = 1000,
};

static void fill(char *at, unsigned int bytes, unsigned int seed)
{
	for (unsigned int i = 0; i < bytes; i++)
		at[i] = (char)(seed + i * 7);
}

static int make_objects(struct side *s)
{
	int (*const steps[])(struct side *) = { side_alloc_pd,	 side_reg_mr,	  side_create_comp,
						side_create_cq,	 side_create_srq, side_create_qp,
						side_post_recvs, side_limit_srq };
	int err = 0;

	for (unsigned int i = 0; i < sizeof(steps) / sizeof(steps[0]) && !err; i++)
		err = steps[i](s);
	return err;
}

static int client_connect(struct side *s, const char *address, int port)
{
	int err = side_open_channel(s);

	err = err ? err : side_create_id(s);
	err = err ? err : side_resolve_addr(s, address, port);
	err = err ? err : side_wait_event(s, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	err = err ? err : side_resolve_route(s);
	err = err ? err : side_wait_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	err = err ? err : make_objects(s);
	err = err ? err : side_connect(s);
	return err ? err : side_wait_event(s, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

/* Whether the echo, which lies in the slots in turn, is what was sent. */
static int echo(struct side *s, unsigned int bytes)
{
	unsigned int slot = s->received % SIDE_SLOTS;
	int err = side_post(s, IBV_WR_SEND, bytes);

	err = err ? err : side_wait(s, &s->received, s->received + 1);
	if (err)
		return err;
	return memcmp(s->buf + slot * SIDE_SLOT_BYTES, s->buf + SIDE_SEND_AT, bytes) ? EBADMSG : 0;
}

static int write_and_read(struct side *s, unsigned int bytes)
{
	char *at = s->buf + SIDE_SEND_AT;
	char *before = malloc(bytes);
	int err = side_post(s, IBV_WR_RDMA_WRITE, bytes);

	memcpy(before, at, bytes);
	err = err ? err : side_wait(s, &s->sent, s->sent + 1);
	if (!err)
		memset(at, 0, bytes);
	err = err ? err : side_post(s, IBV_WR_RDMA_READ, bytes);
	err = err ? err : side_wait(s, &s->sent, s->sent + 1);
	if (!err && memcmp(before, at, bytes) != 0)
		err = EBADMSG;
	free(before);
	return err;
}

static int use(const char *address, int port, unsigned int rounds)
{
	struct side s = { 0 };
	int err = client_connect(&s, address, port);

	for (unsigned int i = 0; !err && (rounds == 0 || i < rounds); i++) {
		unsigned int bytes = 1 + i * 997 % SIDE_SLOT_BYTES;

		fill(s.buf + SIDE_SEND_AT, bytes, i);
		err = write_and_read(&s, bytes);
		err = err ? err : side_wait(&s, &s.sent, s.sent);
		err = err ? err : echo(&s, bytes);
		err = err ? err : side_wait(&s, &s.sent, 3 * (i + 1));
	}
	if (!err)
		side_disconnect(&s);
	side_close(&s);
	if (err == EBADMSG)
		return WRONG_BYTES;
	return err ? ENDED_EARLY : ENDED_WELL;
}

static struct side connections[CONNECTIONS_MAX];

static struct side *find_connection(const struct rdma_cm_id *id)
{
	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].id == id)
			return &connections[i];
	return NULL;
}

static void begin_connection(struct rdma_cm_id *id)
{
	struct side *s = find_connection(NULL);

	if (!s) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	*s = (struct side){ .id = id, .with_srq = (s - connections) % 2 };
	if (make_objects(s) || side_arm(s) || side_accept(s))
		side_close(s);
}

/* False: the listener is no more. */
static bool follow_event(struct side *listener, const struct rdma_cm_event *event)
{
	struct side *s = find_connection(event->id);
	struct rdma_cm_id *id = event->id;
	bool ends = event->event == RDMA_CM_EVENT_DISCONNECTED ||
		    event->event == RDMA_CM_EVENT_CONNECT_ERROR ||
		    event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ||
		    event->event == RDMA_CM_EVENT_REJECTED;
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	bool removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && id == listener->id;

	rdma_ack_cm_event((struct rdma_cm_event *)event);
	if (request)
		begin_connection(id);
	else if (ends && s)
		side_close(s);
	return !removed;
}

static void serve_connection(struct side *s)
{
	struct ibv_cq *cq;
	void *context;
	int err = 0;

	if (ibv_get_cq_event(s->comp, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	else if (errno != EAGAIN)
		err = errno;
	err = err ? err : side_arm(s);
	err = err ? err : side_poll(s, true);
	if (err)
		side_close(s);
}

/* False: nothing more can come. */
static bool serve_some(struct side *listener)
{
	struct pollfd fds[CONNECTIONS_MAX + 1] = { { .fd = listener->channel->fd,
						     .events = POLLIN } };
	struct rdma_cm_event *event;

	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
		fds[i + 1] =
			(struct pollfd){ .fd = connections[i].id ? connections[i].comp->fd : -1,
					 .events = POLLIN };
	if (poll(fds, CONNECTIONS_MAX + 1, WAIT_MS) < 0)
		return false;
	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
		if (fds[i + 1].revents)
			serve_connection(&connections[i]);
	if (fds[0].revents && rdma_get_cm_event(listener->channel, &event) == 0)
		return follow_event(listener, event);
	return true;
}

static int serve(const char *address, int port)
{
	struct side listener = { 0 };
	int err = side_open_channel(&listener);

	err = err ? err : side_create_id(&listener);
	err = err ? err : side_bind(&listener, address, port);
	err = err ? err : side_listen(&listener);
	while (!err && serve_some(&listener))
		;
	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
		side_close(&connections[i]);
	side_close(&listener);
	return err ? ENDED_EARLY : ENDED_WELL;
}

static int run_line(const char *line)
{
	char address[LINE_MAX_BYTES];
	unsigned int rounds;
	int port;

	if (sscanf(line, "serve %127s %d", address, &port) == 2)
		return serve(address, port);
	if (sscanf(line, "use %127s %d %u", address, &port, &rounds) == 3)
		return use(address, port, rounds);
	return EINVAL;
}

static void start(const char *line)
{
	sigset_t none;
	pid_t pid = fork();

	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(STDIN_FILENO);
		_exit(run_line(line));
	}
	printf("%d\n", pid);
}

static void tell_ended(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		printf("%d %d\n", pid,
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(void)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	char line[LINE_MAX_BYTES];
	sigset_t ended;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	ibv_free_device_list(ibv_get_device_list(NULL)); /* providers are found before the storm */
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	fds[1] = (struct pollfd){ .fd = signalfd(-1, &ended, SFD_NONBLOCK), .events = POLLIN };
	puts("ready");
	while (poll(fds, 2, -1) > 0) {
		struct signalfd_siginfo info;

		if (fds[1].revents && read(fds[1].fd, &info, sizeof(info)) > 0)
			tell_ended();
		if (fds[0].revents && !fgets(line, sizeof(line), stdin))
			return 0;
		if (fds[0].revents)
			start(line);
	}
	return 1;
}
