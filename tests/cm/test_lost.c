// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that vanishes without a FIN or a reset: its address goes from the far end of a cable
// between two network namespaces, made here. Skipped where none can be made.
#define _GNU_SOURCE /* unshare */
#include "cm.h"
#include "raw.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOST_MS 2000
#define FULL_OCTETS (32u << 20) /* more than both ends' TCP takes */
#define OUR_IP "10.77.0.1"
#define PEER_IP "10.77.0.2"
#define PEER_PORT 7471

/* The peer: a process in a namespace of its own, led over two pipes. */
struct peer {
	pid_t pid;
	int orders, answers;
};

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* Root of a new user namespace, which a program that is executed stays as well. */
static bool be_alone(void)
{
	char map[64];
	unsigned int uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	put_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put_file("/proc/self/gid_map", map);
	return true;
}

static void tell(int fd)
{
	assert_int_equal(write(fd, "", 1), 1);
}

static void await(int fd)
{
	char octet;

	assert_int_equal(read(fd, &octet, 1), 1);
}

static int serve(void)
{
	struct sockaddr_storage ss = cm_address("0.0.0.0", PEER_PORT);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(listener, 1), 0);
	return listener;
}

/* All that fd sent was acknowledged; a segment of ours acknowledged the peer's before. */
static void settle(int fd)
{
	int left = 1;

	raw_send_fpdu(fd, raw_rtr_write, RAW_RTR_WRITE_LEN);
	for (int ms = 0; left > 0 && ms < EVENT_MS; ms++) {
		assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
		usleep(1000);
	}
	assert_int_equal(left, 0);
}

/* Nothing is under way in either direction when it returns the peer's socket. */
static int start_up(int listener)
{
	static const uint8_t reply[RAW_REQUEST_LEN] =
		"MPA ID Rep Frame\x50\x02\0\x04\x80\x04\x80\x04";
	uint8_t request[RAW_REQUEST_LEN], rtr[RAW_ULPDU_MAX];
	int fd = raw_accept(listener);

	raw_recv(fd, request, sizeof(request));
	raw_send(fd, reply, sizeof(reply));
	raw_recv_fpdu(fd, rtr);
	settle(fd);
	return fd;
}

static void be_peer(int orders, int answers)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	tell(answers);
	await(orders); /* the cable is there */
	assert_int_equal(system("ip addr add " PEER_IP "/24 dev far && ip link set far up"), 0);
	int listener = serve();

	tell(answers);
	start_up(listener);
	tell(answers);
	await(orders);
	assert_int_equal(system("ip addr del " PEER_IP "/24 dev far"), 0);
	tell(answers);
	pause();
}

static void start_peer(struct peer *peer)
{
	int orders[2], answers[2];

	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	peer->pid = fork();
	if (peer->pid == 0) {
		be_peer(orders[0], answers[1]);
		_exit(1);
	}
	close(orders[0]);
	close(answers[1]);
	peer->orders = orders[1];
	peer->answers = answers[0];
	await(peer->answers);
}

static void lay_cable(const struct peer *peer)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "ip link add near type veth peer name far netns %d && ip addr add " OUR_IP
		 "/24 dev near && ip link set near up",
		 (int)peer->pid);
	if (system(command) != 0) {
		kill(peer->pid, SIGKILL);
		_exit(CM_CHILD_SKIPS);
	}
	tell(peer->orders);
	await(peer->answers);
}

/* What is under way when the peer goes. */
enum load {
	LOAD_NONE,
	LOAD_MESSAGE, /* one more octet than TCP has an acknowledgement of */
	LOAD_FULL, /* all that TCP takes for a peer which reads nothing */
};

static void send_full(struct rdma_cm_id *id)
{
	void *octets = calloc(1, FULL_OCTETS);
	struct ibv_mr *mr = rdma_reg_msgs(id, octets, FULL_OCTETS);

	assert_non_null(mr);
	assert_int_equal(rdma_post_send(id, NULL, octets, FULL_OCTETS, mr, 0), 0);
}

static void lose_peer(enum load load)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct peer peer;

	if (!be_alone())
		_exit(CM_CHILD_SKIPS);
	start_peer(&peer);
	lay_cable(&peer);
	cm_set_lost_ms(LOST_MS);
	channel = rdma_create_event_channel();
	id = cm_resolved(channel, PEER_IP, PEER_PORT);
	assert_int_equal(rdma_connect(id, NULL), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	await(peer.answers);
	if (load == LOAD_FULL)
		send_full(id);
	tell(peer.orders);
	await(peer.answers);
	if (load == LOAD_MESSAGE)
		assert_int_equal(rdma_post_send(id, NULL, "ping", 4, NULL, IBV_SEND_INLINE), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	kill(peer.pid, SIGKILL);
	waitpid(peer.pid, NULL, 0);
}

static void lose_idle(void)
{
	lose_peer(LOAD_NONE);
}

static void lose_busy(void)
{
	lose_peer(LOAD_MESSAGE);
}

static void lose_full(void)
{
	lose_peer(LOAD_FULL);
}

/* A stopped program's window is full, and TCP answers for it. */
static void keep_full(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	uint8_t *octets = calloc(1, FULL_OCTETS);
	uint16_t port;
	int listener = raw_listen(&port);
	struct rdma_cm_id *id;
	struct pollfd heard;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	cm_set_lost_ms(LOST_MS);
	id = cm_resolved(channel, "127.0.0.1", port);
	mr = rdma_reg_msgs(id, octets, FULL_OCTETS);
	assert_non_null(mr);
	assert_int_equal(rdma_connect(id, NULL), 0);
	int peer = start_up(listener);

	cm_expect_ack(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_post_send(id, NULL, octets, FULL_OCTETS, mr, IBV_SEND_SIGNALED), 0);
	heard = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
	assert_int_equal(poll(&heard, 1, 4 * LOST_MS), 0);
	assert_int_equal(ibv_poll_cq(id->send_cq, 1, &wc), 0);
	for (size_t left = FULL_OCTETS; left > 0;) {
		size_t n = left < FULL_OCTETS / 16 ? left : FULL_OCTETS / 16;

		raw_recv(peer, octets, n);
		left -= n;
	}
	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	cm_destroy(id);
	rdma_dereg_mr(mr);
	free(octets);
	rdma_destroy_event_channel(channel);
	close(peer);
	close(listener);
}

static void lost__while_idle(void **state)
{
	(void)state;
	cm_pass_in_child(lose_idle);
}

static void lost__with_octets_under_way(void **state)
{
	(void)state;
	cm_pass_in_child(lose_busy);
}

static void lost__with_a_full_window(void **state)
{
	(void)state;
	cm_pass_in_child(lose_full);
}

static void lost__not_while_tcp_answers(void **state)
{
	(void)state;
	cm_pass_in_child(keep_full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost__while_idle),
		cmocka_unit_test(lost__with_octets_under_way),
		cmocka_unit_test(lost__with_a_full_window),
		cmocka_unit_test(lost__not_while_tcp_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
