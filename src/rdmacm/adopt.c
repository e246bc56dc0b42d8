// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections over TCP sockets that the program has connected: include/anywarp/cm.h.
#define _GNU_SOURCE /* O_ASYNC */
#include "anywarp/cm.h"

#include "net/base/policy_env.h"
#include "rdmacm/address.h"
#include "rdmacm/devices.h"
#include "rdmacm/fail.h"
#include "rdmacm/listen.h"
#include "rdmacm/socket.h"
#include "ring/lock.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

struct ends {
	struct sockaddr_storage local, peer;
};

static int read_ends(int fd, struct ends *ends)
{
	socklen_t protocol_len = sizeof(int), local_len = sizeof(ends->local);
	socklen_t peer_len = sizeof(ends->peer);
	int protocol;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_len) < 0)
		return errno;
	if (protocol != IPPROTO_TCP)
		return EPROTONOSUPPORT;
	if (getpeername(fd, (struct sockaddr *)&ends->peer, &peer_len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ends->local, &local_len) < 0)
		return errno;
	return 0;
}

/* Gives the socket the flags and options of one that the library has made. */
static void take_over(const struct aw_cm_id *cm, int fd)
{
	static const struct linger no_linger;
	static const int one = 1, zero;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, (fcntl(fd, F_GETFL) | O_NONBLOCK) & ~O_ASYNC);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &zero, sizeof(zero));
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &zero, sizeof(zero));
	aw_cm_socket_set_tos(cm, fd);
}

int anywarp_cm_initiate(struct rdma_cm_id *id, int fd)
{
	if (!id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	struct ends ends;
	int err = aw_cm_id_state(cm) == AW_CM_IDLE ? read_ends(fd, &ends) : EINVAL;

	if (!err)
		err = aw_cm_device_set(id);
	if (!err && !aw_cm_id_advance(cm, AW_CM_IDLE, AW_CM_ROUTE_RESOLVED))
		err = EINVAL;
	if (err)
		return aw_cm_fail(err);
	take_over(cm, fd);
	aw_address_set_ends(&cm->id.route.addr, &ends.local, &ends.peer);
	cm->fd = fd;
	cm->fd_connected = true;
	return 0;
}

static void tell_failed(struct aw_cm_id *cm, int err)
{
	aw_lock(&cm->lock);
	if (cm->state != AW_CM_ENDED)
		aw_cm_event_tell(cm, RDMA_CM_EVENT_CONNECT_ERROR, -err);
	aw_unlock(&cm->lock);
}

static void on_given(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct aw_cm_id *cm = aw_cm_id_get(arg);
	bool taken = false;

	if (cm && event == AW_CONN_REQUEST) {
		aw_lock(&cm->lock);
		cm->requests++;
		aw_unlock(&cm->lock);
		taken = aw_cm_listen_offer(cm, conn);
		if (!taken) {
			aw_cm_listen_unreserve(cm);
			aw_conn_reject(conn, NULL, 0);
			tell_failed(cm, ENOMEM);
		}
	}
	if (cm && event == AW_CONN_FAILED)
		tell_failed(cm, aw_conn_info(conn)->err);
	if (!taken)
		aw_conn_destroy(conn);
	if (cm)
		aw_cm_id_put(cm);
}

/*
 * Finds the listener of cm, which is made when it is first needed. Only the id's end takes it away.
 */
static int find_listener(struct aw_cm_id *cm, struct aw_listener **listener)
{
	struct aw_mpa_local local = {
		.ird = AW_RD_MAX,
		.ord = AW_RD_MAX,
	};
	struct aw_listener *made;

	aw_lock(&cm->lock);
	*listener = cm->given;
	int err = cm->state == AW_CM_IDLE ? aw_cm_id_hold_engine(cm) : EINVAL;

	aw_unlock(&cm->lock);
	if (err || *listener)
		return err;

	err = aw_policy_local(&local);
	if (!err)
		err = aw_listener_create_given(&local, on_given, aw_cm_id_arg(cm), &made);
	if (err)
		return err;
	aw_lock(&cm->lock);
	if (!cm->given)
		cm->given = made;
	*listener = cm->given;
	aw_unlock(&cm->lock);
	/* Another thread was faster. */
	if (*listener != made)
		aw_listener_destroy(made);
	return 0;
}

int anywarp_cm_respond(struct rdma_cm_id *listen_id, int fd)
{
	if (!listen_id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(listen_id);
	struct aw_listener *listener;
	struct ends ends;
	int flags = fcntl(fd, F_GETFL), closes = fcntl(fd, F_GETFD);
	int err = read_ends(fd, &ends);

	if (!err)
		err = find_listener(cm, &listener);
	if (err)
		return aw_cm_fail(err);
	take_over(cm, fd);
	err = aw_listener_give(listener, fd);
	if (err) {
		fcntl(fd, F_SETFL, flags);
		fcntl(fd, F_SETFD, closes);
	}
	return aw_cm_fail(err);
}
