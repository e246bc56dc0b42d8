// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a program does with a conn: connect, answer, attach, destroy. The states and the events are
// in conn_machine.c. The lock is never held over a call of the QP's, whose listeners may want it.
#include "net/conn.h"

#include "net/addr.h"
#include "net/bounds.h"
#include "net/conn_machine.h"
#include "net/engine.h"
#include "net/linger.h"
#include "net/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define LISTEN_TO_MS 1 /* the soonest that the progress thread can be asked for */

const struct aw_conn_info *aw_conn_info(const struct aw_conn *c)
{
	return &c->info;
}

/* In the child of a fork: the connection is the parent's, and the lock may stay taken for ever. */
static bool is_inherited(const struct aw_conn *c)
{
	return c->generation != aw_engine_generation();
}

static void release(struct aw_watch *w)
{
	struct aw_conn *c = (struct aw_conn *)w;

	if (!is_inherited(c))
		aw_conn_close_fd(c->fd);
	else if (c->fd >= 0)
		close(c->fd);
	pthread_cond_destroy(&c->told);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct aw_conn *create(int fd, const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg)
{
	struct aw_conn *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c)
		return NULL;
	c->local = *local;
	c->generation = aw_engine_generation();
	c->fd = fd;
	c->fn = fn;
	c->arg = arg;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->told, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

static void discard(struct aw_conn *c)
{
	c->fd = -1; /* the caller's */
	release(&c->watch);
}

/* From here on events come, but none before *out is written: they want the lock. */
static int begin(struct aw_conn *c, uint32_t events, struct aw_conn **out)
{
	int err;

	pthread_mutex_lock(&c->lock);
	err = aw_watch_add(&c->watch, c->fd, events, aw_conn_on_watch, release);
	if (!err) {
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
		*out = c;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* Writes the Request for later. EINVAL when the private data does not fit. */
static int prepare_request(struct aw_conn *c, const void *pd, size_t pd_len)
{
	uint8_t *buf = c->out.octets;
	bool enhanced = aw_mpa_request(&c->local, NULL, 0, buf) > MPA_HDR_LEN;

	if (pd_len > aw_mpa_pd_max(enhanced))
		return EINVAL;
	c->out.len = aw_mpa_request(&c->local, pd, pd_len, buf);
	c->info.result.revision = enhanced ? 2 : 1;
	return 0;
}

int aw_conn_connect(int fd, const struct aw_conn_ask *ask, aw_conn_fn *fn, void *arg,
		    struct aw_conn **out)
{
	struct aw_conn *c = create(fd, ask->local, fn, arg);
	socklen_t len = aw_addr_len(ask->peer);
	int err;

	if (!c)
		return ENOMEM;
	err = len ? prepare_request(c, ask->pd, ask->pd_len) : EINVAL;
	if (err)
		goto discard;
	memcpy(&c->info.peer, ask->peer, len);
	c->state = AW_CONN_CONNECTING;
	if (connect(fd, ask->peer, len) != 0 && errno != EINPROGRESS) {
		err = errno;
		aw_log(AW_LOG_INFO, "connection failed peer %s cause %s",
		       aw_addr_text(&c->info.peer).text, strerror(err));
		goto discard;
	}
	err = begin(c, EPOLLOUT, out);
	if (err)
		goto discard;
	return 0;

discard:
	discard(c);
	return err;
}

int aw_conn_respond(int fd, const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg,
		    struct aw_conn **out)
{
	struct aw_conn *c = create(fd, local, fn, arg);
	socklen_t local_len = sizeof(c->info.local), peer_len = sizeof(c->info.peer);
	int err;

	if (!c)
		return ENOMEM;
	getsockname(fd, (struct sockaddr *)&c->info.local, &local_len);
	getpeername(fd, (struct sockaddr *)&c->info.peer, &peer_len);
	c->state = AW_CONN_AWAIT_REQUEST;
	err = begin(c, EPOLLIN, out);
	if (err)
		discard(c);
	return err;
}

void aw_conn_listen_to(struct aw_conn *c, aw_conn_fn *fn, void *arg)
{
	if (is_inherited(c))
		return;
	pthread_mutex_lock(&c->lock);
	while (c->telling && !aw_engine_is_self())
		pthread_cond_wait(&c->told, &c->lock);
	c->fn = fn;
	c->arg = arg;
	if (c->due && fn)
		aw_watch_deadline(&c->watch, LISTEN_TO_MS);
	pthread_mutex_unlock(&c->lock);
}

/* Whether an answer can be given now. Under the lock. */
static int check_answer(const struct aw_conn *c, size_t pd_len)
{
	if (c->state == AW_CONN_OVER && c->info.err)
		return ECONNRESET;
	if (c->state != AW_CONN_DECIDING || pd_len > aw_mpa_pd_max(c->info.result.enhanced))
		return EINVAL;
	return 0;
}

/* The Reply goes out whole or not at all: the socket has taken nothing before it. */
static int send_reply(struct aw_conn *c, bool reject, const void *pd, size_t pd_len)
{
	c->out.len = aw_mpa_reply(&c->local, &c->info.result, reject, pd, pd_len, c->out.octets);
	return aw_frame_send(c->fd, &c->out) == AW_FRAME_DONE ? 0 : ECONNRESET;
}

/* The bounds that the program chose. RFC 6581 9.1: an RTR that is a Read needs an entry. */
static int lower(struct aw_mpa_result *result, uint16_t ird, uint16_t ord)
{
	bool rtr_reads = result->p2p && (result->rtr & MPA_RTR_READ);

	if (ird > result->ird || ord > result->ord)
		return EINVAL;
	result->ird = ird == 0 && rtr_reads ? 1 : ird;
	result->ord = ord;
	return 0;
}

static int give_socket(const struct aw_conn *c, bool initiator, int fd, struct aw_uqp *qp)
{
	const struct aw_mpa_result *result = &c->info.result;
	struct aw_stream stream = {
		.initiator = initiator,
		.crc = result->crc,
		.markers_tx = result->markers_tx,
		.markers_rx = result->markers_rx,
		.p2p = result->p2p,
		.rtr = result->rtr,
		.ird = result->ird,
		.ord = result->ord,
	};
	int err = EIO;

	if (getentropy(&stream.stag_seed, sizeof(stream.stag_seed)) == 0)
		err = aw_uqp_attach(qp, fd, &stream);
	if (err)
		aw_conn_close_fd(fd);
	return err;
}

int aw_conn_accept(struct aw_conn *c, struct aw_uqp *qp, uint16_t ird, uint16_t ord, const void *pd,
		   size_t pd_len)
{
	int fd = -1;
	int err;

	if (is_inherited(c))
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	err = check_answer(c, pd_len);
	if (!err)
		err = lower(&c->info.result, ird, ord);
	if (!err) {
		err = send_reply(c, false, pd, pd_len);
		aw_conn_set_state(c, AW_CONN_OVER);
		fd = aw_conn_take_fd(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (!err)
		return give_socket(c, false, fd, qp);
	aw_conn_close_fd(fd);
	return err;
}

int aw_conn_reject(struct aw_conn *c, const void *pd, size_t pd_len)
{
	int fd = -1;
	int err;

	if (is_inherited(c))
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	err = check_answer(c, pd_len);
	if (!err) {
		err = send_reply(c, true, pd, pd_len);
		aw_conn_set_state(c, AW_CONN_OVER);
		fd = aw_conn_take_fd(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (fd >= 0)
		aw_linger(fd);
	return err == ECONNRESET ? 0 : err;
}

int aw_conn_attach(struct aw_conn *c, struct aw_uqp *qp)
{
	int fd = -1;

	if (is_inherited(c))
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	if (c->state == AW_CONN_READY) {
		aw_conn_set_state(c, AW_CONN_OVER);
		fd = aw_conn_take_fd(c);
	}
	pthread_mutex_unlock(&c->lock);
	return fd >= 0 ? give_socket(c, true, fd, qp) : EINVAL;
}

void aw_conn_destroy(struct aw_conn *c)
{
	if (is_inherited(c)) {
		aw_watch_remove(&c->watch);
		return;
	}
	pthread_mutex_lock(&c->lock);
	c->destroyed = true;
	aw_watch_drop_fd(&c->watch);
	pthread_mutex_unlock(&c->lock);
	if (aw_engine_is_self())
		aw_watch_remove(&c->watch);
	else
		aw_watch_remove_wait(&c->watch);
}
