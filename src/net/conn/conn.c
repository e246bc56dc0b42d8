// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations of the layers above on a conn: connect, answer, attach, destroy. The states and
// the events are in conn_machine.c. The lock is never held during a call into the QP, whose
// listeners may want it.
#include "net/conn/conn.h"

#include "base/log.h"
#include "core/attempt.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/base/random.h"
#include "net/conn/conn_machine.h"
#include "net/conn/conn_tls.h"
#include "net/conn/order.h"
#include "net/progress/engine.h"
#include "net/progress/linger.h"
#include "net/tls/context.h"
#include "ring/lock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTEN_TO_MS 1 /* the shortest deadline of the progress thread */

const struct aw_conn_info *aw_conn_info(const struct aw_conn *c)
{
	return &c->info;
}

/* In the child of a fork the connection is the parent's, and the lock may stay taken for ever. */
static bool is_inherited(const struct aw_conn *c)
{
	return c->generation != aw_fork_generation();
}

static void release(struct aw_watch *w)
{
	struct aw_conn *c = (struct aw_conn *)w;

	if (!is_inherited(c)) {
		aw_conn_close_fd(c->fd);
		aw_tls_free(c->tls);
	} else if (c->fd >= 0) {
		/* The session stays: a lock of OpenSSL's may be taken for ever. */
		aw_close_now(c->fd);
	}
	aw_tls_want_drop(&c->want);
	aw_tls_identity_put(c->info.identity);
	pthread_cond_destroy(&c->told);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* TCP takes these times in seconds, and rejects 0. */
static int seconds(uint32_t ms)
{
	return ms < 1000 ? 1 : (int)(ms / 1000);
}

void aw_conn_set_options(int fd)
{
	uint32_t lost_ms = aw_bounds.lost_ms;
	int idle = seconds(lost_ms / 2), between = seconds(lost_ms / 8);

	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, between);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, (seconds(lost_ms) - idle) / between);
}

static struct aw_conn *create(int fd, const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg)
{
	struct aw_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->local = *local;
	c->generation = aw_fork_generation();
	c->fd = fd;
	c->fn = fn;
	c->arg = arg;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->told, NULL);
	return c;
}

static void discard(struct aw_conn *c)
{
	c->fd = -1; /* the caller's */
	release(&c->watch);
}

/*
 * Over loopback TCP's handshake is over when connect returns, and the Request leaves here, before the socket is watched. No event
 * can run before *out is written; none is kept waiting by a lock, though the Reply may be here before the Request's send returns.
 */
static int begin(struct aw_conn *c, uint32_t deadline_ms, struct aw_conn **out)
{
	uint32_t events;
	int fd = c->fd, err;

	aw_lock(&c->lock);
	err = aw_watch_add(&c->watch, fd, 0, aw_conn_on_watch, release);
	if (!err) {
		if (c->state == AW_CONN_WAITING)
			aw_order_wait(c);
		*out = c;
		if (c->state == AW_CONN_CONNECTING) {
			aw_conn_send_early(c);
			/* Behind the Request: the peer works meanwhile. */
			aw_conn_set_options(fd);
		}
	}
	events = aw_conn_waits[c->state].events;
	aw_unlock(&c->lock);
	return err ? err : aw_watch_begin(&c->watch, fd, events, deadline_ms);
}

/*
 * Memory can be shared only with a peer on this host, over a socket that rdma_cm or net/roce/rc.c
 * has connected.
 */
static bool is_near(const struct aw_conn *c)
{
	return !c->info.given &&
	       aw_host_is_one((const struct sockaddr *)&c->info.local,
			      (const struct sockaddr *)&c->info.peer) &&
	       (c->want.mode != AW_TLS_REQUIRE || aw_conn_tls_shares(c));
}

/* Finds what TLS the connection is to have. The addresses are known. */
static int find_want(struct aw_conn *c, bool accepts)
{
	const struct aw_tls_query query = {
		.accepts = accepts,
		.local = (const struct sockaddr *)&c->info.local,
		.remote = (const struct sockaddr *)&c->info.peer,
	};
	int err = aw_tls_want_find(&query, &c->want);

	/* An initiator that requires TLS has it before there is a Request. */
	c->local.tls = c->want.mode == AW_TLS_OFFER || (accepts && c->want.mode != AW_TLS_OFF);
	if (c->want.mode == AW_TLS_REQUIRE)
		aw_conn_drop_crc(c);
	return err;
}

/* Prepares the Request. EINVAL when the private data does not fit. */
static int prepare_request(struct aw_conn *c, const void *pd, size_t pd_len)
{
	uint8_t *buf = c->out.octets;
	bool enhanced = aw_mpa_request(&c->local, NULL, 0, buf) > MPA_HDR_LEN;

	if (pd_len > aw_mpa_pd_max(enhanced)) {
		aw_log(AW_LOG_ERROR,
		       "connection failed peer %s cause private data of %zu bytes, %zu at the most: "
		       "give less of it to rdma_connect, or to rdma_getaddrinfo (ai_connect)",
		       aw_addr_text(&c->info.peer).text, pd_len, aw_mpa_pd_max(enhanced));
		return EINVAL;
	}
	c->out.len = aw_mpa_request(&c->local, pd, pd_len, buf);
	c->info.result.revision = enhanced ? 2 : 1;
	return 0;
}

static int connect_now(struct aw_conn *c, struct aw_conn **out)
{
	const struct sockaddr *peer = (const struct sockaddr *)&c->info.peer;
	int err;

	c->state = AW_CONN_CONNECTING;
	if (!c->info.given) {
		aw_order_lead(c);
		/* This end has to speak first, and what it says carries the last ACK of TCP's handshake: the peer wakes once. */
		set_option(c->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
		if (aw_connect_now(c->fd, peer, aw_addr_len(peer)) != 0 && errno != EINPROGRESS) {
			err = errno;
			aw_log(AW_LOG_INFO, "connection failed peer %s cause %s",
			       aw_addr_text(&c->info.peer).text, strerror(err));
			return err;
		}
	}
	return begin(c, aw_bounds.startup_ms, out);
}

int aw_conn_connect(int fd, const struct aw_conn_ask *ask, aw_conn_fn *fn, void *arg,
		    struct aw_conn **out)
{
	int err = aw_tls_check();
	struct aw_conn *c = err ? NULL : create(fd, ask->local, fn, arg);
	socklen_t len = aw_addr_len(ask->peer);

	if (!c)
		return err ? err : ENOMEM;
	memcpy(&c->info.peer, ask->peer, len);
	if (ask->from)
		memcpy(&c->info.local, ask->from, aw_addr_len(ask->from));
	c->from_known = ask->from;
	c->info.given = ask->connected;
	c->plain_end = ask->plain_end;
	c->again = ask->again;
	if (c->local.host || aw_tls_is_used())
		aw_conn_learn_local(c);
	err = len ? find_want(c, false) : EINVAL;
	/* Shared memory is offered if the socket is bound to an address of this host already. */
	c->local.host = c->local.host && is_near(c);
	if (!err)
		err = prepare_request(c, ask->pd, ask->pd_len);
	if (err)
		goto discard;
	aw_order_begin(c);
	/* A second try takes its place at once: what it replaces has had its turn. */
	if (!c->info.given && !ask->again && aw_order_is_led(c)) {
		c->state = AW_CONN_WAITING;
		aw_conn_set_options(fd);
		err = begin(c, AW_ATTEMPT_WAIT_MS, out);
	} else {
		err = connect_now(c, out);
	}
	if (err)
		goto discard;
	return 0;

discard:
	aw_order_pass(c);
	discard(c);
	return err;
}

void aw_conn_asked(const struct aw_conn *c, struct aw_conn_ask *ask)
{
	size_t pd_len;
	const uint8_t *pd = aw_frame_pd(&c->out, &pd_len);

	*ask = (struct aw_conn_ask){
		.peer = (const struct sockaddr *)&c->info.peer,
		.local = &c->local,
		.pd = pd,
		.pd_len = pd_len,
		.plain_end = c->plain_end,
		.again = true,
	};
}

int aw_conn_respond(const struct aw_conn_socket *socket, const struct aw_mpa_local *local,
		    aw_conn_fn *fn, void *arg, struct aw_conn **out)
{
	struct aw_conn *c = create(socket->fd, local, fn, arg);
	int err;

	if (!c)
		return ENOMEM;
	c->info.local = socket->local;
	c->from_known = socket->local.ss_family != AF_UNSPEC;
	aw_conn_learn_local(c);
	c->info.peer = socket->peer;
	c->info.given = socket->given;
	err = find_want(c, true);
	c->local.host = c->local.host && is_near(c);
	c->state = c->want.mode == AW_TLS_OFF ? AW_CONN_AWAIT_REQUEST : AW_CONN_AWAIT_FIRST;
	if (!err)
		err = begin(c, aw_bounds.startup_ms, out);
	if (err)
		discard(c);
	return err;
}

void aw_conn_listen_to(struct aw_conn *c, aw_conn_fn *fn, void *arg)
{
	if (is_inherited(c))
		return;
	aw_lock(&c->lock);
	while (c->telling && !aw_engine_is_self())
		pthread_cond_wait(&c->told, &c->lock);
	c->fn = fn;
	c->arg = arg;
	if (c->due && fn)
		aw_watch_deadline(&c->watch, LISTEN_TO_MS);
	aw_unlock(&c->lock);
}

/* 0 when a Reply can be sent now. */
static int check_answer(const struct aw_conn *c, size_t pd_len) AW_REQUIRES(c->lock)
{
	if (c->state == AW_CONN_OVER && c->info.err)
		return ECONNRESET;
	if (c->state != AW_CONN_DECIDING || pd_len > aw_mpa_pd_max(c->info.result.enhanced))
		return EINVAL;
	return 0;
}

/* Writes the Reply to c->out. */
static void make_reply(struct aw_conn *c, bool reject, const void *pd, size_t pd_len)
	AW_REQUIRES(c->lock)
{
	c->out.len = aw_mpa_reply(&c->local, &c->info.result, reject, pd, pd_len, c->out.octets);
}

/*
 * The socket has taken nothing before the Reply but a few waits, so it takes the Reply whole or the connection
 * is lost.
 */
static int send_reply(void *arg, int fd)
{
	struct aw_conn *c = arg;

	return aw_frame_send(fd, c->tls, &c->out) == AW_FRAME_DONE ? 0 : ECONNRESET;
}

/*
 * RFC 6581 9.3: a Terminate notifies the peer of a local error. Only an initiator sends it, since a
 * responder sends no FPDU before one has arrived (RFC 5044 7.1.2).
 */
static void end_stream(struct aw_conn *c, int fd)
{
	if (!c->plain_end) {
		aw_conn_terminate_fd(fd, c->tls, AW_E_MPA_LOCAL, c->info.result.markers_tx);
		return;
	}
	if (c->tls)
		(void)aw_tls_finish(c->tls);
	aw_conn_close_fd(fd);
}

static const char *on_off(bool on)
{
	return on ? "on" : "off";
}

/* Gives the QP a socket that the conn has passed on. */
static int attach(struct aw_conn *c, bool initiator, struct aw_uqp *qp, struct aw_uqp_socket *to)
{
	const struct aw_mpa_result *r = &c->info.result;
	struct aw_stream stream = aw_stream_agreed(r, initiator);
	int err = EIO;

	/* A user finds here which end asked for what. Formatting the peer's address costs more than all the rest. */
	if (aw_log_level() >= AW_LOG_DEBUG)
		aw_log(AW_LOG_DEBUG,
		       "connection agreed peer %s as %s revision %u crc %s markers sent %s "
		       "received %s p2p %s rtr 0x%x ird %u ord %u extensions %s host %s large_fpdus %s",
		       aw_addr_text(&c->info.peer).text, initiator ? "initiator" : "responder",
		       r->revision, on_off(r->crc), on_off(r->markers_tx), on_off(r->markers_rx),
		       on_off(r->p2p), r->rtr, r->ird, r->ord, on_off(r->extensions),
		       on_off(r->host), on_off(r->large_fpdus));
	to->peer = &c->info.peer;
	to->tls = c->tls;
	to->identity = c->info.identity;
	to->segment_size = c->segment_size;
	if (aw_random_take(&stream.stag_seed, sizeof(stream.stag_seed)) == 0)
		err = aw_uqp_attach_to(qp, to, &stream);
	if (!err)
		c->tls = NULL;
	if (err && to->watched)
		aw_watch_drop_passed(to->fd);
	return err;
}

/* The peer may be gone. */
static void send_rejection(struct aw_conn *c, int fd)
{
	(void)send_reply(c, fd);
	if (c->tls)
		(void)aw_tls_finish(c->tls);
	aw_linger_stranger(fd);
}

/*
 * Responder: gives the socket to the QP, and sends the Reply, which rejects where the QP cannot take
 * the socket.
 */
static int give_socket(struct aw_conn *c, struct aw_uqp *qp, struct aw_uqp_socket *to)
{
	to->start = send_reply;
	to->arg = c;
	int err = attach(c, false, qp, to);

	if (err == ECONNRESET) {
		aw_conn_close_fd(to->fd);
	} else if (err) {
		/* Without any Reply a peer takes this end for one that knows no revision 2, and tries revision 1. */
		aw_lock(&c->lock);
		make_reply(c, true, NULL, 0);
		aw_unlock(&c->lock);
		send_rejection(c, to->fd);
	}
	return err;
}

/* The conn is over; its socket, still watched, is the caller's. */
static void pass_socket(struct aw_conn *c, struct aw_uqp_socket *to) AW_REQUIRES(c->lock)
{
	to->fd = aw_conn_pass_fd(c, &to->watched);
	aw_conn_set_state(c, AW_CONN_OVER);
}

int aw_conn_accept(struct aw_conn *c, struct aw_uqp *qp, uint16_t ird, uint16_t ord, const void *pd,
		   size_t pd_len)
{
	struct aw_uqp_socket to = { .fd = -1 };
	int err;

	if (is_inherited(c))
		return EINVAL;
	aw_lock(&c->lock);
	struct aw_mpa_result *result = &c->info.result;

	err = check_answer(c, pd_len);
	if (!err && (ird > result->ird || ord > result->ord))
		err = EINVAL;
	if (!err) {
		/* RFC 6581 9.1: an RTR that is a Read needs an entry. */
		bool rtr_reads = result->p2p && (result->rtr & MPA_RTR_READ);

		result->ird = ird == 0 && rtr_reads ? 1 : ird;
		result->ord = ord;
		make_reply(c, false, pd, pd_len);
		pass_socket(c, &to);
	}
	aw_unlock(&c->lock);
	return err ? err : give_socket(c, qp, &to);
}

int aw_conn_reject(struct aw_conn *c, const void *pd, size_t pd_len)
{
	int fd = -1;
	int err;

	if (is_inherited(c))
		return EINVAL;
	aw_lock(&c->lock);
	err = check_answer(c, pd_len);
	if (!err) {
		make_reply(c, true, pd, pd_len);
		fd = aw_conn_take_fd(c);
		aw_conn_set_state(c, AW_CONN_OVER);
	}
	aw_unlock(&c->lock);
	if (fd >= 0)
		send_rejection(c, fd);
	return err == ECONNRESET ? 0 : err;
}

int aw_conn_attach(struct aw_conn *c, struct aw_uqp *qp)
{
	struct aw_uqp_socket to = { .fd = -1 };

	if (is_inherited(c))
		return EINVAL;
	aw_lock(&c->lock);
	if (c->state == AW_CONN_READY)
		pass_socket(c, &to);
	aw_unlock(&c->lock);
	if (to.fd < 0)
		return EINVAL;
	int err = attach(c, true, qp, &to);

	if (err)
		end_stream(c, to.fd);
	return err;
}

void aw_conn_destroy(struct aw_conn *c)
{
	int fd = -1;

	if (is_inherited(c)) {
		aw_watch_remove(&c->watch);
		return;
	}
	aw_lock(&c->lock);
	c->destroyed = true;
	aw_order_pass(c);
	if (c->state == AW_CONN_READY)
		fd = aw_conn_take_fd(c);
	else
		aw_watch_drop_fd(&c->watch);
	aw_unlock(&c->lock);
	if (fd >= 0)
		end_stream(c, fd);
	if (aw_engine_is_self())
		aw_watch_remove(&c->watch);
	else
		aw_watch_remove_wait(&c->watch);
}

uint64_t aw_conn_watch_key(const struct aw_conn *conn)
{
	return aw_watch_key(&conn->watch);
}

bool aw_conn_has_asked(struct aw_conn *conn)
{
	bool asked;

	aw_lock(&conn->lock);
	asked = conn->state > AW_CONN_SECURING || conn->started_tls;
	aw_unlock(&conn->lock);
	return asked;
}

bool aw_conn_is_silent(struct aw_conn *conn)
{
	bool silent;
	uint8_t octet;

	aw_lock(&conn->lock);
	silent = (conn->state == AW_CONN_AWAIT_FIRST || conn->state == AW_CONN_AWAIT_HELLO ||
		  conn->state == AW_CONN_AWAIT_REQUEST) &&
		 conn->fd >= 0 && aw_recv_now(conn->fd, &octet, 1, MSG_PEEK) < 0 && errno == EAGAIN;
	aw_unlock(&conn->lock);
	return silent;
}
