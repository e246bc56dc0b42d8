// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp_fork_take in each state that a connection, a listening id or a channel may be in.
#include "anywarp/cm.h"
#include "given.h"
#include "raw.h"
#include "start_up.h"
#include "taker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SHORT_MS 30
#define LONG_MESSAGES 6
#define LONG_OCTETS (3u << 20) /* more than a socket takes */
#define FPDU_OCTETS_MAX 66000

static void idle(void)
{
	establish(&half, 0);
	carry(half_alive);
}

/* The child has not taken it yet, and the parent's engine has worked since. */
static void forget_is_silent(void)
{
	int go[2];
	char octet;

	establish(&half, 0);
	assert_int_equal(pipe(go), 0);
	assert_int_equal(anywarp_fork_hold(), 0);
	pid_t pid = fork();

	if (pid == 0) {
		assert_int_equal(read(go[0], &octet, 1), 1);
		assert_int_equal(anywarp_fork_take(&half.id, 1), 0);
		half_alive();
		_exit(0);
	}
	forget(&half);
	assert_int_equal(anywarp_fork_release(), 0);
	establish(&other, 1);
	expect_alive(&other, 1);
	expect_silence(half.fd);
	assert_int_equal(write(go[1], "g", 1), 1);
	expect_exit(pid);
}

static uint8_t fpdu[RAW_ULPDU_MAX];
static size_t fpdu_len, fpdu_cut;

static void make_fpdu(uint8_t msn, const char *text)
{
	uint8_t ulpdu[RAW_ULPDU_MAX];
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	raw_send_fpdu(pair[0], ulpdu, make_send(ulpdu, msn, text));
	fpdu_len = (size_t)recv(pair[1], fpdu, sizeof(fpdu), 0);
	close(pair[0]);
	close(pair[1]);
}

static void expect_halves(void)
{
	raw_send(half.fd, fpdu + fpdu_cut, fpdu_len - fpdu_cut);
	expect_text(&half, 0, "two halves");
}

/* Wherever it is cut: the first part is in the parent's memory at the fork. */
static void half_an_fpdu(void)
{
	struct ibv_wc wc;

	make_fpdu(1, "two halves");
	for (fpdu_cut = 1; fpdu_cut < fpdu_len; fpdu_cut += 7) {
		establish(&half, 0);
		raw_send(half.fd, fpdu, fpdu_cut);
		assert_int_equal(ibv_poll_cq(half.id->recv_cq, 1, &wc), 0);
		carry(expect_halves);
		half_close(&half);
	}
}

static uint8_t pattern(uint32_t msn, size_t at)
{
	return (uint8_t)(msn * 31 + at % 251);
}

/* Takes one FPDU, which must go on where the one before ended; true at its message's end. */
static bool read_segment(int fd, uint32_t msn, size_t *at)
{
	static uint8_t in[FPDU_OCTETS_MAX];
	size_t len;

	raw_recv(fd, in, 2);
	len = word(in);
	raw_recv(fd, in + 2, ((2 + len + 3) & ~(size_t)3) + 4 - 2);
	assert_int_equal(in[3] & 0xf, 3);
	assert_int_equal(word(in + 14), msn);
	assert_int_equal((size_t)word(in + 16) << 16 | word(in + 18), *at);
	for (size_t i = 20; i < 2 + len; i++, (*at)++)
		if (in[i] != pattern(msn, *at))
			fail_msg("message %u octet %zu is 0x%x", msn, *at, in[i]);
	return in[2] & 0x40;
}

static void read_messages(int fd)
{
	for (uint32_t msn = 1; msn <= LONG_MESSAGES; msn++) {
		size_t at = 0;

		while (!read_segment(fd, msn, &at))
			continue;
		assert_int_equal(at, LONG_OCTETS);
	}
}

static void read_on(void)
{
	struct ibv_wc wc;

	read_messages(half.fd);
	for (int i = 0; i < LONG_MESSAGES; i++) {
		assert_int_equal(rdma_get_send_comp(half.id, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	half_alive();
}

static void post_long_messages(struct half *h)
{
	static uint8_t memory[LONG_MESSAGES][LONG_OCTETS];
	struct ibv_mr *mr = rdma_reg_msgs(h->id, memory, sizeof(memory));

	for (uint32_t msn = 1; msn <= LONG_MESSAGES; msn++) {
		uint8_t *p = memory[msn - 1];

		for (size_t i = 0; i < LONG_OCTETS; i++)
			p[i] = pattern(msn, i);
		assert_int_equal(rdma_post_send(h->id, NULL, p, LONG_OCTETS, mr, 0), 0);
	}
}

/* The peer takes nothing: a batch that is sent in part, and messages behind it, are in memory. */
static void full_socket(void)
{
	establish(&half, 0);
	post_long_messages(&half);
	carry(read_on);
}

static int go[2];

static void live_until_told(void)
{
	char octet;

	half_alive();
	assert_int_equal(read(go[0], &octet, 1), 1);
}

/* Its id is destroyed, so that nobody can name it; it is the parent's alone to send the rest. */
static void closing_stream(void)
{
	assert_int_equal(pipe(go), 0);
	establish(&half, 0);
	establish(&other, 1);
	post_long_messages(&other);
	rdma_destroy_id(other.id);
	pid_t pid = fork_taker(&half.id, 1, live_until_told);

	forget(&half);
	assert_int_equal(anywarp_fork_release(), 0);
	read_messages(other.fd);
	raw_expect_end(other.fd);
	assert_int_equal(write(go[1], "g", 1), 1);
	expect_exit(pid);
}

static void expect_event(void)
{
	struct pollfd pfd = { .fd = half.id->recv_cq_channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), 0);
	assert_ptr_equal(cq, half.id->recv_cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	expect_text(&half, 0, "event");
	/* And the next one, which nobody polls for. */
	assert_int_equal(fcntl(pfd.fd, F_SETFL, 0), 0);
	post_recv(&half, 1);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	raw_send(half.fd, fpdu, fpdu_len);
	assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	expect_text(&half, 1, "next");
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* In vain, until a signal: who has slept there has an epoll set for it, which is not the child's. */
static void sleep_on_channel(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value.tv_usec = 1000, .it_interval.tv_usec = 1000 };
	struct ibv_cq *cq;
	void *context;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), -1);
	assert_int_equal(errno, EINTR);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
}

/* It waits at the fork; each process has one, and a file of its own that tells of it. */
static void completion_event(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	make_fpdu(2, "next");
	establish(&half, 0);
	sleep_on_channel();
	pfd.fd = half.id->recv_cq_channel->fd;
	assert_int_equal(fcntl(pfd.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_req_notify_cq(half.id->recv_cq, 0), 0);
	send_text(half.fd, "event");
	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	pid_t pid = fork_taker(&half.id, 1, expect_event);

	expect_exit(pid);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(ibv_get_cq_event(half.id->recv_cq_channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	forget(&half);
	assert_int_equal(anywarp_fork_release(), 0);
}

static void expect_disconnected(void)
{
	struct rdma_cm_event *event;

	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_get_cm_event(half.channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rdma_disconnect(half.id), 0);
	cm_destroy(half.id);
	raw_expect_end(half.fd);
}

static void await_event(struct half *h)
{
	struct pollfd pfd = { .fd = h->channel->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
}

static void connection_event(void)
{
	establish(&half, 0);
	assert_int_equal(fcntl(half.channel->fd, F_SETFL, O_NONBLOCK), 0);
	shutdown(half.fd, SHUT_WR);
	await_event(&half);
	carry(expect_disconnected);
}

static void expect_timewait_exit(void)
{
	cm_expect_ack(half.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

/* A deadline of the parent's is the child's. */
static void deadline(void)
{
	cm_set_timewait_ms(SHORT_MS);
	establish(&half, 0);
	close(half.fd);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_disconnect(half.id);
	carry(expect_timewait_exit);
}

static void expect_timeout(void)
{
	cm_expect_ack(half.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	raw_expect_end(half.fd);
}

static void start_up_deadline(void)
{
	cm_set_startup_ms(10 * SHORT_MS);
	half_open_client(&half);
	carry(expect_timeout);
}

static void expect_established(void)
{
	uint8_t frame[ENHANCED] = "MPA ID Rep Frame\x50\x02\0\4\0\1\0\1";

	raw_send(half.fd, frame + 5, sizeof(frame) - 5);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	post_recv(&half, 0);
	half_alive();
}

/* The Reply comes in two parts, one to each. */
static void initiator(void)
{
	half_open_client(&half);
	raw_send(half.fd, "MPA I", 5);
	carry(expect_established);
}

static void answer_request(void)
{
	uint8_t frame[ENHANCED], ulpdu[RAW_ULPDU_MAX] = { 0 };

	post_recv(&(struct half){ .id = half.server }, 0);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, frame, sizeof(frame));
	assert_memory_equal(frame, "MPA ID Rep Frame", 16);
	raw_send_fpdu(half.fd, raw_rtr_write, RAW_RTR_WRITE_LEN);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_post_send(half.server, NULL, "hi", 3, NULL, IBV_SEND_INLINE), 0);
	assert_int_equal(raw_recv_fpdu(half.fd, ulpdu), 18 + 3);
}

static void take_request(void)
{
	half_take_request(&half);
	answer_request();
}

/* It lies in the channel, and the program has not looked. */
static void request_in_channel(void)
{
	half_open_server(&half);
	raw_send(half.fd, raw_request, sizeof(raw_request));
	await_event(&half);
	carry(take_request);
}

static void request_taken(void)
{
	half_open_server(&half);
	raw_send(half.fd, raw_request, sizeof(raw_request));
	half_take_request(&half);
	pid_t pid = fork_taker(&half.server, 1, answer_request);

	assert_int_equal(anywarp_cm_forget(half.server), 0);
	assert_int_equal(anywarp_fork_release(), 0);
	expect_exit(pid);
	/* The listening id stayed here. */
	close(half.fd);
	half.fd = raw_connect(cm_port(half.id));
	raw_send(half.fd, raw_request, sizeof(raw_request));
	take_request();
}

static void hear_rest(void)
{
	raw_send(half.fd, raw_request + 7, sizeof(raw_request) - 7);
	take_request();
	/* It listens as well. */
	close(half.fd);
	half.fd = raw_connect(cm_port(half.id));
	raw_send(half.fd, raw_request, sizeof(raw_request));
	take_request();
}

static void listening(void)
{
	half_open_server(&half);
	raw_send(half.fd, raw_request, 7);
	carry(hear_rest);
}

static void hear_rest_of_given(void)
{
	raw_send(half.fd, raw_request + 7, sizeof(raw_request) - 7);
	take_request();
}

static void responder_of_a_given_socket(void)
{
	uint16_t port;
	int listener = raw_listen(&port);

	half.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(half.channel, &half.id, NULL, RDMA_PS_TCP), 0);
	half.fd = raw_connect(port);
	assert_int_equal(anywarp_cm_respond(half.id, raw_accept(listener)), 0);
	raw_send(half.fd, raw_request, 7);
	carry(hear_rest_of_given);
}

/* Behind the start-up's bound, which does not hold for a given socket. */
static void outlast_start_up(void)
{
	struct half own;

	half_open_client(&own);
	cm_expect_ack(own.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	half_close(&own);
}

static void hear_late_request(void)
{
	outlast_start_up();
	raw_send(half.fd, raw_request, sizeof(raw_request));
	take_request();
}

static void late_request(void)
{
	cm_set_startup_ms(SHORT_MS);
	given_open_responder(&half);
	outlast_start_up();
	carry(hear_late_request);
}

static void hear_late_reply(void)
{
	outlast_start_up();
	send_reply(half.fd, C, 0, 1);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	post_recv(&half, 0);
	half_alive();
}

static void late_reply(void)
{
	cm_set_startup_ms(SHORT_MS);
	given_open_initiator(&half);
	outlast_start_up();
	carry(hear_late_reply);
}

static void expect_no_rest(void)
{
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	raw_expect_end(half.fd);
}

/* The bound of a frame that has begun goes along. */
static void half_a_late_request(void)
{
	cm_set_startup_ms(10 * SHORT_MS);
	given_open_responder(&half);
	raw_send(half.fd, raw_request, 7);
	carry(expect_no_rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle),
		TEST(forget_is_silent),
		TEST(half_an_fpdu),
		TEST(full_socket),
		TEST(closing_stream),
		TEST(completion_event),
		TEST(connection_event),
		TEST(deadline),
		TEST(start_up_deadline),
		TEST(initiator),
		TEST(request_in_channel),
		TEST(request_taken),
		TEST(listening),
		TEST(responder_of_a_given_socket),
		TEST(late_request),
		TEST(late_reply),
		TEST(half_a_late_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
