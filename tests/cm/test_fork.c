// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Processes: the child of a fork uses the library afresh and cannot hurt the parent's connections;
// a peer that is killed, or exits without a word, is a disconnected one.
#include "cm.h"

#include "net/qp/host_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX 64 /* more than the connection and the library have */

static struct cm_ends shared;

static void connect_in_child(void)
{
	struct cm_ends ends;

	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void destroy_in_child(void)
{
	cm_ends_close(&shared);
	connect_in_child();
}

static void send_one(void)
{
	uint8_t octets[4];
	char text[] = "fork";
	struct ibv_mr *to = rdma_reg_msgs(shared.server, octets, sizeof(octets));
	struct ibv_mr *from = rdma_reg_msgs(shared.client, text, 4);
	struct ibv_wc wc;

	assert_int_equal(rdma_post_recv(shared.server, NULL, octets, sizeof(octets), to), 0);
	assert_int_equal(
		rdma_post_send(shared.client, NULL, from->addr, 4, from, IBV_SEND_SIGNALED), 0);
	assert_int_equal(rdma_get_recv_comp(shared.server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_get_send_comp(shared.client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(octets, "fork", 4);
	rdma_dereg_mr(to);
	rdma_dereg_mr(from);
}

/* Octets of address space that show the memory of connections, four times a ring of each direction for each end. */
static size_t shown_of_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char line[512];
	size_t shown = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "anywarp-host") && sscanf(line, "%lx-%lx", &begin, &end) == 2)
			shown += end - begin;
	fclose(maps);
	return shown;
}

/* Connects the two, which both have left TCP behind where they are to share memory. */
static void connect_shared(void)
{
	const char *path = getenv("ANYWARP_HOST_PATH");
	size_t rings = path && strcmp(path, "on") == 0 ? 2 * 4 * (size_t)AW_HOST_RING_BYTES : 0;

	cm_ends_open(&shared, "127.0.0.1");
	cm_ends_connect(&shared);
	do
		send_one();
	while (shown_of_rings() < rings);
	send_one();
}

static void fork__child_starts_afresh(void **state)
{
	(void)state;
	connect_shared();
	assert_int_equal(cm_in_child(connect_in_child), 0);
	send_one();
	cm_ends_disconnect(&shared);
	cm_ends_close(&shared);
}

/* What the child has closed and opened anew is its own, also in its own child. */
static void reopen_and_fork(void)
{
	char path[] = "/tmp/anywarp-fork-XXXXXX";
	struct stat file, there;
	int fd = mkstemp(path), status;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &file), 0);
	unlink(path);
	for (int at = 3; at < FILES_MAX; at++)
		assert_int_equal(dup2(fd, at), at);
	pid = fork();
	if (pid == 0) {
		for (int at = 3; at < FILES_MAX; at++)
			if (fstat(at, &there) != 0 || there.st_ino != file.st_ino)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void fork__grandchild_has_its_parent_s_files(void **state)
{
	(void)state;
	connect_shared();
	assert_int_equal(cm_in_child(reopen_and_fork), 0);
	send_one();
	cm_ends_disconnect(&shared);
	cm_ends_close(&shared);
}

/* The parent's event is the parent's; an id of the child's own works on the channel. */
static void use_channel_in_child(void)
{
	struct rdma_cm_event *event;

	cm_expect_none(shared.active);
	assert_int_equal(rdma_get_cm_event(shared.active, &event), -1);
	assert_int_equal(errno, EAGAIN);
	cm_destroy(cm_resolved(shared.active, "127.0.0.1", 1));
	cm_expect_none(shared.active);
}

static void fork__channel_is_not_shared(void **state)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	(void)state;
	shared.active = rdma_create_event_channel();
	assert_int_equal(fcntl(shared.active->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_create_id(shared.active, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_get_cm_event(shared.active, &event), -1);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	assert_int_equal(cm_in_child(use_channel_in_child), 0);
	cm_expect_ack(shared.active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(shared.active);
}

static void fork__child_destroys_inherited(void **state)
{
	(void)state;
	connect_shared();
	assert_int_equal(cm_in_child(destroy_in_child), 0);
	send_one();
	cm_ends_disconnect(&shared);
	cm_ends_close(&shared);
}

/* Else it would stay for as long as the child runs, which knows nothing of it. The child of a child has none to give up. */
static void expect_no_rings(void)
{
	assert_int_equal(shown_of_rings(), 0);
	assert_int_equal(cm_in_child(destroy_in_child), 0);
	destroy_in_child();
}

static void fork__child_keeps_no_memory_of_a_connection(void **state)
{
	(void)state;
	connect_shared();
	assert_int_equal(cm_in_child(expect_no_rings), 0);
	send_one();
	cm_ends_disconnect(&shared);
	cm_ends_close(&shared);
}

static void fork__child_destroys_inherited_request(void **state)
{
	(void)state;
	cm_ends_open(&shared, "127.0.0.1");
	cm_ends_request(&shared);
	assert_int_equal(cm_in_child(destroy_in_child), 0);
	assert_int_equal(rdma_accept(shared.server, NULL), 0);
	cm_expect_ack(shared.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect_ack(shared.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_one();
	cm_ends_disconnect(&shared);
	cm_ends_close(&shared);
}

/* It runs until its pipe is closed. */
static pid_t idle_child(int pipes[2])
{
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();

	if (pid == 0) {
		char octet;

		close(pipes[1]);
		(void)!read(pipes[0], &octet, 1);
		_exit(0);
	}
	close(pipes[0]);
	return pid;
}

static void fork__destroyed_listener_is_gone(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(channel, "127.0.0.1", 4), *client;
	uint16_t port = cm_port(listener);
	struct sockaddr_storage ss = cm_address("127.0.0.1", port);
	int pipes[2];
	pid_t child = idle_child(pipes);

	(void)state;
	rdma_destroy_id(listener);
	client = cm_resolved(channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(client, NULL), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_destroy(client);
	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&ss), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	rdma_destroy_id(listener);
	close(pipes[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	rdma_destroy_event_channel(channel);
}

enum client_end {
	KILLED,
	EXITS, /* with exit(3), and everything still open */
};

/* Connects to the parent, posts, and exits or waits to be killed. */
static void be_client(int port_pipe, enum client_end end)
{
	uint16_t port;

	if (read(port_pipe, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_resolved(channel, "127.0.0.1", port);

	rdma_connect(id, NULL);
	cm_expect_ack(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_post_send(id, NULL, &port, sizeof(port), NULL, IBV_SEND_INLINE), 0);
	if (end == EXITS)
		exit(0);
	for (;;)
		pause();
}

/* A client that goes without a word is disconnected, what it sent has arrived, and we go on. */
static void expect_gone(enum client_end end)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener, *id;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();

	if (child == 0)
		be_client(fds[0], end);
	listener = cm_listener(channel, "127.0.0.1", 1);
	uint16_t port = cm_port(listener);

	assert_int_equal(write(fds[1], &port, sizeof(port)), sizeof(port));
	struct rdma_cm_event *event = cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	id = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(id);
	struct ibv_mr *mr = rdma_reg_msgs(id, &port, sizeof(port));

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(id, NULL, &port, sizeof(port), mr), 0);
	assert_int_equal(rdma_accept(id, NULL), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	if (end == KILLED)
		assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	cm_expect_ack(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	cm_destroy(id);
	rdma_destroy_id(listener);
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
	close(fds[0]);
	close(fds[1]);
}

static void peer__killed(void **state)
{
	(void)state;
	expect_gone(KILLED);
}

static void peer__exits(void **state)
{
	(void)state;
	expect_gone(EXITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork__child_starts_afresh),
		cmocka_unit_test(fork__grandchild_has_its_parent_s_files),
		cmocka_unit_test(fork__channel_is_not_shared),
		cmocka_unit_test(fork__child_destroys_inherited),
		cmocka_unit_test(fork__child_keeps_no_memory_of_a_connection),
		cmocka_unit_test(fork__child_destroys_inherited_request),
		cmocka_unit_test(fork__destroyed_listener_is_gone),
		cmocka_unit_test(peer__killed),
		cmocka_unit_test(peer__exits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
