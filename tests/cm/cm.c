// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends of a connection in one process and one thread: calls never wait for the peer.
#define _GNU_SOURCE /* memfd_create */
#include "cm.h"

#include "net/base/bounds.h"
#include "net/conn/conn.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct rdma_event_channel *cm_channel;

int cm_open_channel(void **state)
{
	(void)state;
	cm_channel = rdma_create_event_channel();
	return cm_channel ? 0 : -1;
}

int cm_close_channel(void **state)
{
	(void)state;
	cm_expect_none(cm_channel);
	rdma_destroy_event_channel(cm_channel);
	return 0;
}

struct sockaddr_storage cm_address(const char *ip, uint16_t port)
{
	struct sockaddr_storage ss = { .ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET };
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ss;

	if (ss.ss_family == AF_INET) {
		sin->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, ip, &sin->sin_addr), 1);
	} else {
		sin6->sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, ip, &sin6->sin6_addr), 1);
	}
	return ss;
}

struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				int status)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	if (event->event != type || event->status != status)
		print_error("%s status %d\n", rdma_event_str(event->event), event->status);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	return event;
}

void cm_expect_ack(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	assert_int_equal(rdma_ack_cm_event(cm_expect(channel, type, status)), 0);
}

void cm_expect_none(struct rdma_event_channel *channel)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, 0), 0);
}

struct rdma_cm_id *cm_bound(struct rdma_event_channel *channel, const char *ip)
{
	struct sockaddr_storage ss = cm_address(ip, 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&ss), 0);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	return id;
}

struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, const char *ip, int backlog)
{
	struct rdma_cm_id *id = cm_bound(channel, ip);

	assert_int_equal(rdma_listen(id, backlog), 0);
	return id;
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_non_null(id->qp);
}

struct rdma_cm_id *cm_resolved(struct rdma_event_channel *channel, const char *ip, uint16_t port)
{
	struct sockaddr_storage ss = cm_address(ip, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1000), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cm_make_qp(id);
	return id;
}

void cm_destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

uint16_t cm_port(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

void cm_ends_open(struct cm_ends *ends, const char *ip)
{
	memset(ends, 0, sizeof(*ends));
	ends->passive = rdma_create_event_channel();
	ends->active = rdma_create_event_channel();
	assert_non_null(ends->passive);
	assert_non_null(ends->active);
	ends->listener = cm_listener(ends->passive, ip, 0);
	ends->client = cm_resolved(ends->active, ip, cm_port(ends->listener));
}

void cm_ends_request(struct cm_ends *ends)
{
	assert_int_equal(rdma_connect(ends->client, NULL), 0);
	cm_ends_take_request(ends);
}

void cm_ends_take_request(struct cm_ends *ends)
{
	struct rdma_cm_event *event = cm_expect(ends->passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	ends->server = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	cm_make_qp(ends->server);
}

void cm_ends_connect(struct cm_ends *ends)
{
	cm_ends_request(ends);
	cm_ends_accept(ends);
}

void cm_ends_accept(struct cm_ends *ends)
{
	assert_int_equal(rdma_accept(ends->server, NULL), 0);
	cm_expect_ack(ends->active, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect_ack(ends->passive, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void cm_ends_disconnect(struct cm_ends *ends)
{
	assert_int_equal(rdma_disconnect(ends->client), 0);
	cm_expect_ack(ends->passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(ends->server), 0);
	cm_expect_ack(ends->active, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void cm_ends_close(struct cm_ends *ends)
{
	if (ends->client)
		cm_destroy(ends->client);
	if (ends->server)
		cm_destroy(ends->server);
	if (ends->listener)
		assert_int_equal(rdma_destroy_id(ends->listener), 0);
	cm_expect_none(ends->passive);
	cm_expect_none(ends->active);
	rdma_destroy_event_channel(ends->passive);
	rdma_destroy_event_channel(ends->active);
}

/* A failed assertion must not go on with the parent's tests: cmocka aborts when told so. */
int cm_in_child(void (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void cm_pass_in_child(void (*fn)(void))
{
	int status = cm_in_child(fn);

	if (status == CM_CHILD_SKIPS)
		skip();
	assert_int_equal(status, 0);
}

/* An assertion that fails in fn is heard of by the result of the child that this should run in. */
void cm_take_log(void (*fn)(void), char text[CM_LOG_MAX])
{
	int saved = dup(STDERR_FILENO), log = memfd_create("log", 0);
	ssize_t len;

	dup2(log, STDERR_FILENO);
	fn();
	dup2(saved, STDERR_FILENO);
	len = pread(log, text, CM_LOG_MAX - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	close(log);
	close(saved);
}

void cm_expect_log(void (*fn)(void), const char *words)
{
	char text[CM_LOG_MAX];

	cm_take_log(fn, text);
	if (!strstr(text, words))
		fail_msg("not in the log: %s\n%s", words, text);
}

static struct aw_bounds *bounds(void)
{
	struct aw_bounds *b = dlsym(RTLD_DEFAULT, "aw_bounds");

	assert_non_null(b);
	return b;
}

void cm_set_startup_ms(uint32_t ms)
{
	bounds()->startup_ms = ms;
}

void cm_set_wait_ms(uint32_t ms)
{
	bounds()->wait_ms = ms;
}

void cm_set_lost_ms(uint32_t ms)
{
	bounds()->lost_ms = ms;
}

void cm_set_timewait_ms(uint32_t ms)
{
	bounds()->timewait_ms = ms;
}

int cm_reset_bounds(void **state)
{
	(void)state;
	cm_set_startup_ms(AW_CONN_STARTUP_MS);
	cm_set_wait_ms(AW_CONN_WAIT_MS);
	cm_set_lost_ms(AW_CONN_LOST_MS);
	cm_set_timewait_ms(AW_TIMEWAIT_MS);
	return 0;
}
