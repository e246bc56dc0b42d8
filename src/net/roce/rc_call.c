// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections that a QP of the roce persona makes by itself.
#include "base/clock.h"
#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/io_now.h"
#include "net/base/random.h"
#include "net/roce/qpn.h"
#include "net/roce/rc_impl.h"
#include "net/tls/want.h"
#include "ring/lock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)
#define AGAIN_MS_FIRST 10

static void on_call(void *arg, struct aw_conn *conn, enum aw_conn_event event);
static void join_self(struct aw_rc *rc) AW_REQUIRES(rc->lock);

/* Binds to the address that the peer was told of, because the peer checks it. */
static int open_socket(const struct aw_pair_end *local, int *out)
{
	struct sockaddr_storage addr;
	int fd, err;

	aw_pair_address(local, 0, &addr);
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return errno;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&addr, aw_addr_len((struct sockaddr *)&addr)) == 0) {
		*out = fd;
		return 0;
	}
	err = errno;
	aw_close_now(fd);
	return err;
}

static int connect_peer(struct aw_rc *rc, int fd) AW_REQUIRES(rc->lock)
{
	const struct aw_pair *told = &rc->told.pair;
	const struct pair pair = aw_rc_pair(rc, PAIR_OK);
	struct aw_mpa_local local;
	struct sockaddr_storage peer;
	uint8_t pd[PAIR_LEN];
	int err = aw_rc_mpa_local(&local);

	if (err)
		return err;
	local.ird = aw_rc_depth(rc->told.ird);
	local.ord = aw_rc_depth(rc->ord);
	pair_put(&pair, pd);
	aw_pair_address(&told->remote, aw_qpn_port(told->remote.qpn), &peer);
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&peer,
		.plain_end = true,
		.local = &local,
		.pd = pd,
		.pd_len = sizeof(pd),
	};

	return aw_conn_connect(fd, &ask, on_call, rc, &rc->call);
}

static void say(const struct aw_rc *rc, const char *what, const char *why) AW_REQUIRES(rc->lock)
{
	aw_log(AW_LOG_INFO, "qp 0x%x: %s peer qp 0x%x: %s", rc->qp->qpn, what,
	       rc->told.pair.remote.qpn, why);
}

void aw_rc_call(struct aw_rc *rc)
{
	int fd = -1, err;

	rc->call_ns = 0;
	if (aw_pair_is_self(&rc->told.pair)) {
		join_self(rc);
		return;
	}
	err = open_socket(&rc->told.pair.local, &fd);
	if (!err) {
		err = connect_peer(rc, fd);
		if (err)
			aw_close_now(fd);
	}
	if (!err) {
		rc->phase = AW_PAIR_CALLING;
		return;
	}
	say(rc, "cannot call", strerror(err));
	aw_rc_call_later(rc);
}

void aw_rc_call_later(struct aw_rc *rc)
{
	uint64_t ms = AW_RC_AGAIN_MS;

	if (rc->calls < 8 && (AGAIN_MS_FIRST << rc->calls) < AW_RC_AGAIN_MS)
		ms = AGAIN_MS_FIRST << rc->calls;
	rc->calls++;
	rc->phase = AW_PAIR_WAITING;
	rc->call_ns = aw_now_ns() + ms * MS_NS;
}

void aw_rc_drop_call(struct aw_rc *rc, struct aw_rc_litter *litter)
{
	if (rc->call)
		aw_rc_drop(litter, rc->call);
	rc->call = NULL;
}

static const char *answer_text(enum pair_answer answer)
{
	switch (answer) {
	case PAIR_OK:
		return "it said yes, for another qp";
	case PAIR_NO_QP:
		return "there is no such qp";
	case PAIR_OTHER_PEER:
		return "it was told to connect to another qp";
	case PAIR_ADDRESS:
		return "the call did not come from the gid that it names: an address is translated "
		       "on the way";
	case PAIR_BUSY:
		return "it has a connection";
	case PAIR_MALFORMED:
		return "it knows no calls of this kind: is its persona roce, and its version the same?";
	case PAIR_OTHER_TYPE:
		return "its qp is of another type: rc talks to rc, uc to uc, xrc send to xrc recv";
	}
	return "unknown";
}

/* Reads the peer's reply. PAIR_OK, or the reason why it is no acceptance. */
static enum pair_answer read_reply(const struct aw_rc *rc, const struct aw_conn *conn,
				   struct pair *reply) AW_REQUIRES(rc->lock)
{
	const struct aw_mpa_result *result = &aw_conn_info(conn)->result;

	if (!result->pd || !pair_get(result->pd, result->pd_len, reply))
		return PAIR_MALFORMED;
	return reply->answer ? reply->answer
			     : aw_pair_match(&rc->told.pair, reply, &aw_conn_info(conn)->peer);
}

static bool on_accepted(struct aw_rc *rc, struct aw_conn *conn, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock)
{
	struct pair reply;
	enum pair_answer answer = read_reply(rc, conn, &reply);
	int err;

	if (answer) {
		say(rc, "no connection with", answer_text(answer));
		if (answer == PAIR_OTHER_TYPE)
			aw_rc_log_type(rc);
		return false;
	}
	aw_rc_agree(rc, &reply);
	err = aw_conn_attach(conn, rc->qp);
	if (err) {
		say(rc, "no connection with", strerror(err));
		return false;
	}
	aw_rc_joined(rc);
	aw_rc_drop_held_until(rc, reply.incarnation, litter);
	return true;
}

/*
 * A QP has its port from its creation on, so a peer of this host answers; ibv_modify_qp has refused a path without GRH to a port
 * that nobody has, and here another program has it. Said once a process: a program that exchanges LIDs
 * does so for all its QPs.
 */
static void tell_of_lid(const struct aw_rc *rc) AW_REQUIRES(rc->lock)
{
	static _Atomic bool told;

	if (!rc->told.by_lid || rc->met ||
	    atomic_exchange_explicit(&told, true, memory_order_relaxed))
		return;
	aw_log(AW_LOG_ERROR,
	       "qp 0x%x: no process of this host has its peer, qp 0x%x, and " AW_QPN_NO_GRH
	       "; ibv_rc_pingpong: -g 0 at both ends, qperf: -cm 1)",
	       rc->qp->qpn, rc->told.pair.remote.qpn);
}

static void on_rejected(struct aw_rc *rc, const struct aw_conn *conn) AW_REQUIRES(rc->lock)
{
	struct pair reply;
	enum pair_answer answer = read_reply(rc, conn, &reply);

	say(rc, "rejected by", answer_text(answer));
	if (answer == PAIR_NO_QP || answer == PAIR_MALFORMED)
		tell_of_lid(rc);
	if (answer == PAIR_OTHER_TYPE)
		aw_rc_log_type(rc);
}

/* Ends the call with its event. */
static void conclude(struct aw_rc *rc, struct aw_conn *conn, enum aw_conn_event event,
		     struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	rc->phase = AW_PAIR_WAITING;
	switch (event) {
	case AW_CONN_ACCEPTED:
		if (on_accepted(rc, conn, litter))
			return;
		break;
	case AW_CONN_REJECTED:
		on_rejected(rc, conn);
		break;
	case AW_CONN_FAILED:
		say(rc, "no connection with", strerror(aw_conn_info(conn)->err));
		tell_of_lid(rc);
		break;
	case AW_CONN_REQUEST:
		break;
	}
	if (!aw_rc_answer_held(rc, litter))
		aw_rc_call_later(rc);
}

static void on_call(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct aw_rc_litter litter = { .count = 0 };
	struct aw_rc *rc = arg;

	aw_lock(&rc->lock);
	if (rc->call == conn) {
		rc->call = NULL;
		conclude(rc, conn, event, &litter);
		aw_rc_drop(&litter, conn);
		aw_rc_set_clock(rc);
	}
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

/*
 * Connects a TCP socket to itself, so that it receives what it sends: local and peer port are the
 * same one, which the kernel chooses.
 */
static int open_mirror(const struct aw_pair_end *local, int *out)
{
	struct sockaddr_storage addr;
	struct sockaddr *sa = (struct sockaddr *)&addr;
	socklen_t len;
	int fd, err = 0;

	aw_pair_address(local, 0, &addr);
	len = aw_addr_len(sa);
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return errno;
	/*
	 * TCP's handshake with itself is complete when connect returns, though connect may return
	 * EINPROGRESS.
	 */
	if (bind(fd, sa, len) != 0 || getsockname(fd, sa, &len) != 0 ||
	    (aw_connect_now(fd, sa, aw_addr_len(sa)) != 0 && errno != EINPROGRESS))
		err = errno;
	else if (aw_poll_now(fd, POLLOUT) != POLLOUT)
		err = ECONNABORTED;
	if (err)
		aw_close_now(fd);
	else
		*out = fd;
	return err;
}

static int attach_mirror(struct aw_rc *rc, int fd) AW_REQUIRES(rc->lock)
{
	/* There is no peer to agree with: both ends can do the same. */
	struct aw_stream stream = {
		.initiator = true,
		.crc = true,
		.ird = aw_rc_depth(rc->told.ird),
		.ord = aw_rc_depth(rc->told.ird),
		.extensions = true,
		.large_fpdus = true,
		.placement = true,
	};

	const struct pair own = aw_rc_pair(rc, PAIR_OK);

	if (aw_random_take(&stream.stag_seed, sizeof(stream.stag_seed)) != 0)
		return EIO;
	aw_conn_set_options(fd);
	aw_rc_agree(rc, &own);
	return aw_uqp_attach(rc->qp, fd, &stream);
}

static void join_self(struct aw_rc *rc)
{
	int fd = -1;
	int err = aw_tls_refuse("a qp that is its own peer");

	if (!err)
		err = open_mirror(&rc->told.pair.local, &fd);
	if (!err) {
		err = attach_mirror(rc, fd);
		if (err)
			aw_close_now(fd);
	}
	if (!err) {
		aw_rc_joined(rc);
		return;
	}
	say(rc, "cannot be its own", strerror(err));
	aw_rc_call_later(rc);
}
