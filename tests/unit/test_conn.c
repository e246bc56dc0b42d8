// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A conn as initiator, against a raw TCP peer that does everything a responder can do in MPA
// start-up.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "net/base/bounds.h"
#include "net/conn/conn_machine.h"
#include "wire/crc32c.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic uint32_t
	forgotten_in_vain; /* fds that the kernel was asked to forget and did not know */

/* Before the C library's. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	int result = (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);

	if (op == EPOLL_CTL_DEL && result != 0)
		forgotten_in_vain++;
	return result;
}

static int start(struct scene *s, const struct aw_mpa_local *local, const void *pd, size_t pd_len)
{
	int fd = tcp_socket(AF_INET);
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&s->addr,
		.local = local,
		.pd = pd,
		.pd_len = pd_len,
	};
	int err = aw_conn_connect(fd, &ask, heard_fn, &s->heard, &s->conn);

	if (err)
		close(fd);
	return err;
}

/* Connects, and lets the raw peer read the Request. */
static void start_and_read(struct scene *s, const struct aw_mpa_local *local)
{
	uint8_t request[MPA_HDR_LEN + MPA_ENH_LEN];

	assert_int_equal(start(s, local, NULL, 0), 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, request, local == &scene_plain ? MPA_HDR_LEN : sizeof(request));
}

/* Over loopback no other thread is needed for it. */
static void conn_connect__sends_the_request_itself(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_HDR_LEN + MPA_ENH_LEN];

	scene_hold_engine(s);
	assert_int_equal(start(s, &scene_enhanced, NULL, 0), 0);
	s->peer = tcp_accept(s->listener);
	assert_int_equal(recv(s->peer, octets, sizeof(octets), MSG_DONTWAIT), sizeof(octets));
	scene_free_engine(s);
}

static void conn_connect__request_and_reply(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX + 3];
	struct mpa_frame frame;
	size_t len;

	assert_int_equal(start(s, &scene_enhanced, "hello", 5), 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN + 5);
	assert_int_equal(mpa_parse(octets, MPA_HDR_LEN + MPA_ENH_LEN + 5, &frame, &len),
			 MPA_PARSE_OK);
	assert_int_equal(frame.kind, MPA_REQUEST);
	assert_int_equal(frame.flags, MPA_FLAG_CRC | MPA_FLAG_ENHANCED);
	assert_memory_equal(frame.pd + MPA_ENH_LEN, "hello", 5);

	/* The octets behind the Reply are the QP's: the conn must not read them. */
	len = scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2);
	memcpy(octets + len, "qp!", 3);
	tcp_send(s->peer, octets, len + 3);
	assert_ptr_equal(heard_await(&s->heard, 0, AW_CONN_ACCEPTED), s->conn);
	assert_memory_equal(&aw_conn_info(s->conn)->peer, &s->addr, tcp_addr_len(&s->addr));
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_true(s->qp.stream.initiator && s->qp.stream.crc && s->qp.stream.p2p);
	assert_int_equal(s->qp.stream.rtr, MPA_RTR_WRITE);
	assert_int_equal(s->qp.stream.ord, 4);
	assert_int_equal(recv(s->qp.fd, octets, sizeof(octets), 0), 3);
	assert_memory_equal(octets, "qp!", 3);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), EINVAL);
}

/* Bytes behind the Reply wait for the QP, and keep the progress thread from nothing. */
static void conn_connect__early_bytes(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX + 3];

	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	scene_await_events(s, EPOLLIN);
	tcp_send(s->peer, "qp!", 3);
	scene_await_events(s, 0);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_int_equal(recv(s->qp.fd, octets, sizeof(octets), 0), 3);
}

/* What start-up came to reaches the QP; siw sends the Request's flags back, which is no answer. */
static void conn_connect__extensions(void **state)
{
	static const struct {
		uint8_t flags;
		bool agreed, placement;
	} cases[] = {
		{ MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE, true, false },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_PLACEMENT_AGREE, true, true },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_CRC | MPA_FLAG_EXT_OFFER | MPA_FLAG_PLACEMENT_OFFER,
		  false, false },
	};
	struct aw_mpa_local local = scene_enhanced;
	struct scene *s = *state;

	local.extensions = local.placement = true;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t octets[MPA_FRAME_MAX];

		start_and_read(s, &local);
		tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, cases[i].flags, 2));
		heard_await(&s->heard, i, AW_CONN_ACCEPTED);
		assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
		assert_int_equal(s->qp.stream.extensions, cases[i].agreed);
		assert_int_equal(s->qp.stream.placement, cases[i].placement);
		aw_conn_destroy(s->conn);
		close(s->peer);
		close(s->qp.fd);
		s->conn = NULL;
		s->peer = s->qp.fd = -1;
	}
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* Of the socket that the QP has: a peer that is gone without a word is found out in two minutes. */
static void conn_attach__peer_can_be_lost(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_int_equal(option(s->qp.fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
	assert_int_equal(option(s->qp.fd, IPPROTO_TCP, TCP_KEEPCNT), 4);
	assert_int_equal(option(s->qp.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(s->qp.fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	assert_int_equal(option(s->qp.fd, IPPROTO_TCP, TCP_KEEPINTVL), 15);
	assert_int_equal(option(s->qp.fd, IPPROTO_TCP, TCP_NODELAY), 1);
}

static void conn_attach__asks_the_kernel_once(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced);
	forgotten_in_vain = 0;
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_int_equal(forgotten_in_vain, 0);
}

static void conn_connect__reply_in_pieces(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	size_t len = scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2);

	start_and_read(s, &scene_enhanced);
	tcp_send_slowly(s->peer, octets, len);
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
}

static void conn_connect__rejected(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	const struct mpa_frame frame = { .kind = MPA_REPLY,
					 .flags = MPA_FLAG_REJECT,
					 .revision = 1,
					 .pd = (const uint8_t *)"no",
					 .pd_len = 2 };

	start_and_read(s, &scene_plain);
	tcp_send(s->peer, octets, mpa_build(&frame, octets));
	heard_await(&s->heard, 0, AW_CONN_REJECTED);
	assert_int_equal(aw_conn_info(s->conn)->result.pd_len, 2);
	assert_memory_equal(aw_conn_info(s->conn)->result.pd, "no", 2);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), EINVAL);
}

static void conn_connect__refused(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage listening = s->addr;
	int deaf = tcp_bind(AF_INET, &s->addr); /* nobody else may listen there */
	int err;

	err = start(s, &scene_plain, NULL, 0);
	s->addr = listening;
	if (err)
		assert_int_equal(err, ECONNREFUSED);
	else
		scene_failed(s, ECONNREFUSED);
	close(deaf);
}

static uint32_t refusals_of(struct aw_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	uint32_t refusals = conn->refusals;

	pthread_mutex_unlock(&conn->lock);
	return refusals;
}

static void await_refusal(const struct aw_conn *conn)
{
	struct pollfd pollfd = { .fd = conn->fd };

	assert_int_equal(poll(&pollfd, 1, TCP_WAIT_S * 1000), 1);
	/* TCP tells the error once: to the thread that has tried to send the Request. */
	assert_true(pollfd.revents & POLLHUP);
}

/* The progress thread sees the refusal when there is a listener: its tries are not over before. */
static void conn_connect__refused_at_first(void **state)
{
	struct scene *s = *state;

	close(s->listener);
	s->listener = tcp_bind(AF_INET, &s->addr); /* refuses, until it listens */
	assert_int_equal(fcntl(s->listener, F_SETFL, 0), 0);
	scene_hold_engine(s);
	assert_int_equal(start(s, &scene_plain, NULL, 0), 0);
	await_refusal(s->conn);
	assert_int_equal(listen(s->listener, 1), 0);
	scene_free_engine(s);
	s->peer = tcp_accept(s->listener);
	assert_int_equal(refusals_of(s->conn), 1);
	assert_int_equal(heard_count(&s->heard), 0);
}

static void fill_backlog(struct scene *s, int waiting[2])
{
	close(s->listener);
	s->listener = tcp_listen(0, &s->addr);
	for (int i = 0; i < 2; i++) {
		waiting[i] = tcp_socket(AF_INET);
		connect(waiting[i], (struct sockaddr *)&s->addr, tcp_addr_len(&s->addr));
	}
}

static void conn_connect__no_answer_to_tcp(void **state)
{
	struct scene *s = *state;
	int waiting[2];

	fill_backlog(s, waiting);
	aw_bounds.startup_ms = 30;
	assert_int_equal(start(s, &scene_plain, NULL, 0), 0);
	scene_failed(s, ETIMEDOUT);
	close(waiting[0]);
	close(waiting[1]);
}

/* TCP's connect does not use up the time that the Reply may take. */
static void conn_connect__reply_has_its_own_time(void **state)
{
	struct scene *s = *state;
	uint64_t for_tcp;
	int waiting[2];

	fill_backlog(s, waiting);
	scene_hold_engine(s);
	assert_int_equal(start(s, &scene_plain, NULL, 0), 0);
	assert_int_equal(s->conn->state, AW_CONN_CONNECTING);
	for_tcp = s->conn->watch.deadline_ns;
	aw_conn_on_watch(&s->conn->watch, EPOLLOUT);
	assert_int_equal(s->conn->state, AW_CONN_SENDING);
	assert_true(s->conn->watch.deadline_ns > for_tcp);
	scene_free_engine(s);
	close(waiting[0]);
	close(waiting[1]);
}

static void conn_connect__silent_peer(void **state)
{
	struct scene *s = *state;

	aw_bounds.startup_ms = 30;
	start_and_read(s, &scene_enhanced);
	assert_int_equal(scene_failed(s, ETIMEDOUT).next_revision, 0);
	tcp_assert_over(s->peer);
}

static void conn_asked__is_what_was_asked(void **state)
{
	const struct aw_mpa_local *const locals[] = { &scene_enhanced, &scene_plain };
	struct scene *s = *state;
	struct aw_conn_ask ask;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(start(s, locals[i], "abc", 3), 0);
		aw_conn_asked(s->conn, &ask);
		assert_int_equal(ask.pd_len, 3);
		assert_memory_equal(ask.pd, "abc", 3);
		assert_int_equal(ask.local->revision, locals[i]->revision);
		assert_memory_equal(ask.peer, &s->addr, tcp_addr_len(&s->addr));
		aw_conn_destroy(s->conn);
		s->conn = NULL;
		close(tcp_accept(s->listener));
	}
}

static void conn_connect__half_a_reply_and_fin(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2) - 1);
	shutdown(s->peer, SHUT_WR);
	assert_int_equal(scene_failed(s, ECONNRESET).next_revision, 0);
}

static void fail_with(struct scene *s, const void *octets, size_t len)
{
	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, len);
	scene_failed(s, EPROTO);
	tcp_assert_over(s->peer);
}

static void conn_connect__wrong_key(void **state)
{
	fail_with(*state, "HTTP/1.1 400 Bad", 16);
}

static void conn_connect__private_data_too_long(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	scene_frame(octets, MPA_REPLY, 0, 2);
	put_be16(octets + 18, MPA_PD_MAX + 1);
	fail_with(*state, octets, MPA_HDR_LEN);
}

static void conn_connect__request_for_a_reply(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	fail_with(*state, octets, scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED, 2));
}

static void conn_connect__revision_3(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	fail_with(*state, octets, scene_frame(octets, MPA_REPLY, 0, 3));
}

/* The Terminate that ends start-up: length, headers, error, CRC; behind a marker when asked for. */
static void assert_terminate(int peer, bool marker, uint8_t code)
{
	uint8_t fpdu[32];
	size_t len = marker ? 32 : 28;
	const uint8_t *p = marker ? fpdu + 4 : fpdu;

	tcp_recv(peer, fpdu, len);
	if (marker)
		assert_memory_equal(fpdu, "\0\0\0\0", 4);
	assert_int_equal(get_be16(p), 22);
	assert_int_equal(p[2], 0x41);
	assert_int_equal(p[3], 0x47);
	assert_int_equal(get_be32(p + 8), 2);
	assert_int_equal(get_be32(p + 12), 1);
	assert_int_equal(get_be32(p + 16), 0);
	assert_int_equal(p[20], 0x20);
	assert_int_equal(p[21], code);
	assert_int_equal(get_be16(p + 22), 0);
	assert_int_equal(get_le32(fpdu + len - 4),
			 crc32c_final(crc32c_update(CRC32C_INIT, fpdu, len - 4)));
	tcp_assert_over(peer);
}

static void conn_connect__no_common_rtr(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	size_t len = scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED | MPA_FLAG_CRC, 2);

	mpa_enhanced_put(&(struct mpa_enhanced){ .p2p = true, .rtr = MPA_RTR_SEND, .ird = 4 },
			 octets + MPA_HDR_LEN);
	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, len);
	scene_failed(s, EOPNOTSUPP);
	assert_terminate(s->peer, false, 0x07);
}

static void conn_connect__ird_too_small(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	size_t len = scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED | MPA_FLAG_MARKERS, 2);

	mpa_enhanced_put(
		&(struct mpa_enhanced){ .p2p = true, .rtr = MPA_RTR_WRITE, .ird = 4, .ord = 17 },
		octets + MPA_HDR_LEN);
	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, len);
	scene_failed(s, ENOMEM);
	assert_terminate(s->peer, true, 0x06);
}

static void send_pd(struct scene *s, const struct aw_mpa_local *local, size_t pd_len)
{
	uint8_t pd[MPA_PD_MAX], octets[MPA_FRAME_MAX];
	size_t front = MPA_HDR_LEN + (local == &scene_plain ? 0 : MPA_ENH_LEN);

	memset(pd, 'x', sizeof(pd));
	assert_int_equal(start(s, local, pd, pd_len), 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, front + pd_len);
	assert_memory_equal(octets + front, pd, pd_len);
	aw_conn_destroy(s->conn);
	s->conn = NULL;
	tcp_assert_over(s->peer);
	close(s->peer);
	s->peer = -1;
}

static void conn_connect__private_data_sizes(void **state)
{
	struct scene *s = *state;
	uint8_t pd[MPA_PD_MAX + 1] = { 0 };

	send_pd(s, &scene_plain, 0);
	send_pd(s, &scene_plain, 1);
	send_pd(s, &scene_plain, 512);
	assert_int_equal(start(s, &scene_plain, pd, 513), EINVAL);
	send_pd(s, &scene_enhanced, 0);
	send_pd(s, &scene_enhanced, 1);
	send_pd(s, &scene_enhanced, 508);
	assert_int_equal(start(s, &scene_enhanced, pd, 509), EINVAL);
	assert_int_equal(heard_count(&s->heard), 0);
}

static void conn_attach__qp_refuses(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), EINVAL);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	s->qp.err = ENOMEM;
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), ENOMEM);
	assert_terminate(s->peer, false, 0x05); /* RFC 6581 9.3: a local error */
}

/* RFC 6581 9.3: whoever wanted the connection is gone when the peer has accepted it. */
static void conn_destroy__accepted(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	aw_conn_destroy(s->conn);
	s->conn = NULL;
	assert_terminate(s->peer, false, 0x05);
}

static void conn_destroy__from_its_event(void **state)
{
	struct scene *s = *state;

	s->heard.destroy = true;
	start_and_read(s, &scene_enhanced);
	s->conn = NULL;
	tcp_send(s->peer, "garbage", 7);
	tcp_assert_over(s->peer);
	heard_await(&s->heard, 0, AW_CONN_FAILED);
}

/* A fork's child may clean up what it inherited; the parent's connection goes on. */
static void conn_destroy__in_the_child_of_a_fork(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	int status;
	pid_t child;

	start_and_read(s, &scene_enhanced);
	child = fork();
	if (child == 0) {
		int err = aw_conn_attach(s->conn, &s->qp.uqp);

		aw_conn_destroy(s->conn);
		_exit(err == EINVAL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_connect__sends_the_request_itself),
		TEST(conn_connect__request_and_reply),
		TEST(conn_connect__early_bytes),
		TEST(conn_connect__extensions),
		TEST(conn_attach__peer_can_be_lost),
		TEST(conn_attach__asks_the_kernel_once),
		TEST(conn_connect__reply_in_pieces),
		TEST(conn_connect__rejected),
		TEST(conn_connect__refused),
		TEST(conn_connect__refused_at_first),
		TEST(conn_connect__no_answer_to_tcp),
		TEST(conn_connect__reply_has_its_own_time),
		TEST(conn_connect__silent_peer),
		TEST(conn_asked__is_what_was_asked),
		TEST(conn_connect__half_a_reply_and_fin),
		TEST(conn_connect__wrong_key),
		TEST(conn_connect__private_data_too_long),
		TEST(conn_connect__request_for_a_reply),
		TEST(conn_connect__revision_3),
		TEST(conn_connect__no_common_rtr),
		TEST(conn_connect__ird_too_small),
		TEST(conn_connect__private_data_sizes),
		TEST(conn_attach__qp_refuses),
		TEST(conn_destroy__accepted),
		TEST(conn_destroy__from_its_event),
		TEST(conn_destroy__in_the_child_of_a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
