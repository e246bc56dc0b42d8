// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Beside the connections that a child takes: those that it does not, calls that fail, calls out of place.
#define _GNU_SOURCE /* close_range */
#include "anywarp/cm.h"
#include "raw.h"
#include "start_up.h"
#include "taker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 12

static void only_half_alive(void)
{
	/* The other one, which was not taken, is closed here, and can go. */
	half_alive();
	cm_destroy(other.id);
	cm_expect_none(other.channel);
}

/* The child has no part in what it did not take: its end is the parent's. */
static void others_are_left(void)
{
	establish(&half, 0);
	establish(&other, 1);
	carry(only_half_alive);
	expect_alive(&other, 1);
	cm_destroy(other.id);
	raw_expect_end(other.fd);
}

/* Pipes: the parent is gone, with all of its files; who has come to its end well says so. */
static int gone[2], done[2];
static uint16_t left_port; /* somebody listened there */

static void expect_refused(uint16_t port)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	close(fd);
}

static void outlive_parent(void)
{
	char octet;

	assert_int_equal(read(gone[0], &octet, 1), 1);
	raw_expect_end(other.fd);
	expect_refused(left_port);
	expect_silence(half.fd);
	half_alive();
	assert_int_equal(write(done[1], "d", 1), 1);
}

/* Nor does it keep one open: the peer of a killed process hears of it. */
static void others_are_closed(void)
{
	char octet;

	assert_int_equal(pipe(gone), 0);
	assert_int_equal(pipe(done), 0);
	pid_t pid = fork();

	if (pid == 0) {
		close(gone[1]);
		left_port = cm_port(cm_listener(rdma_create_event_channel(), "127.0.0.1", 1));
		establish(&half, 0);
		establish(&other, 1);
		fork_taker(&half.id, 1, outlive_parent);
		raise(SIGKILL);
	}
	close(done[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(write(gone[1], "g", 1), 1);
	assert_int_equal(read(done[0], &octet, 1), 1);
}

static struct half many[MANY];
static struct ibv_cq *common_cq;
static char texts[MANY][16];

static void take_common_cq(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!common_cq)
		common_cq = ibv_create_cq(id->verbs, 4 * MANY, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = common_cq;
	rdma_destroy_qp(id);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static void establish_on_common_cq(int i)
{
	struct half *h = &many[i];
	uint16_t port;

	h->listener = raw_listen(&port);
	h->channel = rdma_create_event_channel();
	h->id = cm_resolved(h->channel, "127.0.0.1", port);
	take_common_cq(h->id);
	struct ibv_mr *mr = rdma_reg_msgs(h->id, texts[i], sizeof(texts[i]));

	assert_int_equal(rdma_post_recv(h->id, &many[i], texts[i], sizeof(texts[i]), mr), 0);
	assert_int_equal(rdma_connect(h->id, NULL), 0);
	h->fd = raw_accept(h->listener);
	raw_recv(h->fd, (uint8_t[RAW_REQUEST_LEN]){ 0 }, RAW_REQUEST_LEN);
	send_reply(h->fd, C, 0, 1);
	cm_expect_ack(h->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* A message for each of the ids comes, and nothing else. Who polls so much is left to serve them itself. */
static void poll_common_cq(int from, int to)
{
	struct ibv_wc wc;

	for (int i = from; i < to; i++) {
		for (int turn = 0; turn < 100; turn++)
			assert_int_equal(ibv_poll_cq(common_cq, 1, &wc), 0);
		send_text(many[i].fd, "to one");
		while (ibv_poll_cq(common_cq, 1, &wc) == 0)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &many[i]);
		assert_string_equal(texts[i], "to one");
	}
	assert_int_equal(ibv_poll_cq(common_cq, 1, &wc), 0);
}

static void poll_second_half(void)
{
	poll_common_cq(MANY / 2, MANY);
}

/* The CQ's epoll set is not the other's: each goes on with its half, at the same time. */
static void many_on_a_cq(void)
{
	struct rdma_cm_id *ids[MANY / 2];

	for (int i = 0; i < MANY; i++)
		establish_on_common_cq(i);
	for (int i = MANY / 2; i < MANY; i++)
		ids[i - MANY / 2] = many[i].id;
	pid_t pid = fork_taker(ids, MANY / 2, poll_second_half);

	for (int i = MANY / 2; i < MANY; i++)
		forget(&many[i]);
	assert_int_equal(anywarp_fork_release(), 0);
	poll_common_cq(0, MANY / 2);
	expect_exit(pid);
}

static void limit_files(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* No file for the child's own event channel and engine: what it shares would be the parent's. */
static void short_of_files(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	establish(&half, 0);
	pfd.fd = half.id->recv_cq_channel->fd;
	assert_int_equal(ibv_req_notify_cq(half.id->recv_cq, 0), 0);
	send_text(half.fd, "event");
	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	assert_int_equal(anywarp_fork_hold(), 0);
	limit_files(3);
	pid_t pid = fork();

	if (pid == 0) {
		assert_int_equal(anywarp_fork_take(&half.id, 1), -1);
		assert_int_equal(errno, EMFILE);
		limit_files(256);
		assert_int_equal(anywarp_fork_take(&half.id, 1), 0);
		assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), 0);
		expect_text(&half, 0, "event");
		/* Left in the channel: the parent's fd is none of this process's. */
		shutdown(half.fd, SHUT_WR);
		pfd.fd = half.channel->fd;
		assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
		_exit(0);
	}
	expect_exit(pid);
	limit_files(256);
	cm_expect_none(half.channel);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	forget(&half);
	assert_int_equal(anywarp_fork_release(), 0);
}

/* Its connection is over but for the peer's FIN; it stays the parent's, who is not done with it. */
static void lingering_socket(void)
{
	establish(&half, 0);
	establish(&other, 1);
	cm_destroy(other.id);
	carry(half_alive);
	raw_expect_end(other.fd);
}

/* A child that started afresh, and that closed what it inherited, has a child that carries on. */
static void behind_an_ordinary_fork(void)
{
	for (int i = 0; i < 8; i++)
		establish(&other, 1);
	pid_t pid = fork();

	if (pid == 0) {
		close_range(3, UINT_MAX, 0);
		establish(&half, 0);
		carry(half_alive);
		_exit(0);
	}
	expect_exit(pid);
	expect_alive(&other, 1);
}

static void hold_without_a_fork(void)
{
	establish(&half, 0);
	assert_int_equal(anywarp_fork_hold(), 0);
	assert_int_equal(anywarp_fork_release(), 0);
	half_alive();
}

static void expect_invalid(int ret)
{
	assert_int_equal(ret, -1);
	assert_int_equal(errno, EINVAL);
}

/* Out of place; and an ordinary fork after it starts afresh. */
static void misuse(void)
{
	struct rdma_cm_id *null = NULL;

	establish(&half, 0);
	expect_invalid(anywarp_fork_release());
	expect_invalid(anywarp_fork_take(&half.id, 1));
	expect_invalid(anywarp_cm_forget(half.id));
	assert_int_equal(anywarp_fork_hold(), 0);
	expect_invalid(anywarp_fork_hold());
	expect_invalid(anywarp_fork_take(&half.id, 1));
	expect_invalid(anywarp_cm_forget(NULL));
	pid_t pid = fork();

	if (pid == 0) {
		expect_invalid(anywarp_fork_release());
		expect_invalid(anywarp_fork_take(&null, 1));
		expect_invalid(anywarp_fork_take(NULL, 1));
		expect_invalid(anywarp_fork_take(&half.id, -1));
		assert_int_equal(anywarp_fork_take(NULL, 0), 0);
		expect_invalid(anywarp_fork_take(NULL, 0));
		cm_destroy(half.id);
		_exit(0);
	}
	expect_exit(pid);
	assert_int_equal(anywarp_fork_release(), 0);
	pid = fork();
	if (pid == 0) {
		expect_invalid(anywarp_fork_take(&half.id, 1));
		cm_destroy(half.id);
		_exit(0);
	}
	expect_exit(pid);
	half_alive();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_are_left),	   TEST(others_are_closed),
		TEST(many_on_a_cq),	   TEST(short_of_files),
		TEST(lingering_socket),	   TEST(behind_an_ordinary_fork),
		TEST(hold_without_a_fork), TEST(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
