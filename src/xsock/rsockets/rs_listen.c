// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rlisten, raccept. Only connections that raccept can return take a place in the queue; a set-up
// that fails takes none. When a connection is taken from a full queue, the service looks at the
// listener again.
#include "xsock/rsockets/rs_listen.h"

#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <unistd.h>

#include "xsock/endpoint/executor.h"
#include "xsock/rsockets/rs_name.h"
#include "xsock/rsockets/rs_service.h"
#include "xsock/rsockets/rs_table.h"

/* rdma-core's queue has no bound that programs reach, whatever backlog they pass to rlisten. */
#define QUEUE_MIN 128
#define QUEUE_MAX 1024
/*
 * Each connection in a queue has files of the process; those of all listeners together take at most
 * a sixteenth of RLIMIT_NOFILE.
 */
#define FILES_PART 16
#define FILES_EACH 4
#define FILES_QUEUE_MIN 4

static atomic_uint listening; // listeners of this process

/* Returns whether the queue has room, and notes it for raccept. Without room further Requests wait in librdmacm. */
static bool has_room(struct aw_rs *rs) AW_REQUIRES(rs->lock)
{
	unsigned int sharers = atomic_load(&listening);
	rlim_t most = FILES_QUEUE_MIN, share;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		share = files.rlim_cur / FILES_PART / FILES_EACH / (sharers ? sharers : 1);
		most = share > most ? share : most;
	}
	rs->was_full = rs->queued >= (most < rs->queued_max ? (unsigned int)most : rs->queued_max);
	return !rs->was_full;
}

void aw_rs_listen_forked(void)
{
	atomic_store(&listening, 0);
}

static struct aw_rs *queue_pop(struct aw_rs *rs) AW_REQUIRES(rs->lock)
{
	struct aw_rs *accepted = STAILQ_FIRST(&rs->queue);
	eventfd_t one;

	if (!accepted)
		return NULL;
	STAILQ_REMOVE_HEAD(&rs->queue, entry);
	rs->queued--;
	eventfd_read(rs->fd, &one);
	return accepted;
}

/* Accepts a Request. NULL: it has failed, and the peer was rejected. Unchecked: no other thread has the new rsocket. */
static struct aw_rs *accept_request(struct aw_rs *rs, struct rdma_cm_event *request) AW_UNCHECKED
{
	struct aw_rs *accepted = aw_rs_create(rs->domain, &rs->options);
	struct aw_xs_ep *ep;

	if (!accepted || aw_rs_make_ep(accepted, &ep)) {
		rdma_reject(request->id, NULL, 0);
		rdma_destroy_id(request->id);
	} else if (aw_xs_ep_accept(ep, request)) {
		aw_xs_ep_close(ep, true);
	} else {
		accepted->accepted = true;
		aw_rs_set_ep(accepted, ep);
		return accepted;
	}
	if (accepted)
		aw_rs_destroy(accepted);
	return NULL;
}

int aw_rs_listen_serve(struct aw_rs *rs)
{
	struct rdma_cm_event *event;
	struct aw_rs *accepted;
	bool listens;
	int fd = -1;

	pthread_mutex_lock(&rs->lock);
	listens = rs->state == AW_RS_LISTENING && rs->id;
	while (listens && has_room(rs) && !aw_xs_ep_cm_event(rs->channel, &event)) {
		accepted = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? accept_request(rs, event)
									 : NULL;
		rdma_ack_cm_event(event);
		if (!accepted)
			continue;
		STAILQ_INSERT_TAIL(&rs->queue, accepted, entry);
		rs->queued++;
		eventfd_write(rs->fd, 1);
	}
	if (listens && !rs->was_full)
		fd = rs->channel->fd;
	pthread_mutex_unlock(&rs->lock);
	return fd;
}

void aw_rs_listen_end(struct aw_rs *rs)
{
	struct aw_rs *accepted;

	pthread_mutex_lock(&rs->lock);
	if (rs->state == AW_RS_LISTENING && rs->id)
		atomic_fetch_sub(&listening, 1);
	aw_rs_drop_id(rs);
	for (accepted = queue_pop(rs); accepted; accepted = queue_pop(rs)) {
		accepted->options.linger =
			(struct linger){ .l_onoff = 1 }; /* resets the connection */
		aw_rs_destroy(accepted);
	}
	// Wakes the threads that wait in raccept.
	if (rs->state == AW_RS_LISTENING)
		eventfd_write(rs->fd, 1);
	pthread_mutex_unlock(&rs->lock);
}

int rlisten(int socket, int backlog)
{
	unsigned int queued_max = (unsigned int)MIN(MAX(backlog, QUEUE_MIN), QUEUE_MAX);
	struct aw_rs *rs = aw_rs_enter(socket);
	int err = -EINVAL;

	if (!rs)
		return -1;
	if (rs->datagram)
		return (int)aw_rs_leave(rs, -EOPNOTSUPP);
	pthread_mutex_lock(&rs->lock);
	if (rs->state == AW_RS_LISTENING) {
		rs->queued_max = queued_max;
		err = 0;
	} else if (rs->state < AW_RS_LISTENING) {
		err = rs->state == AW_RS_NEW ? aw_rs_name_bind(rs, NULL) : 0;
		if (!err && (fcntl(rs->channel->fd, F_SETFL, O_NONBLOCK) ||
			     rdma_listen(rs->id, (int)queued_max)))
			err = -errno;
		if (!err) {
			rs->state = AW_RS_LISTENING;
			rs->queued_max = queued_max;
			atomic_fetch_add(&listening, 1);
		}
	}
	pthread_mutex_unlock(&rs->lock);
	return (int)aw_rs_leave(rs, err ? err : aw_rs_service_watch(rs));
}

/* Takes a connection from the queue. Returns 0, -EAGAIN or -EINVAL. */
static int take_accepted(struct aw_rs *rs, struct aw_rs **accepted)
{
	bool was_full, listens;

	pthread_mutex_lock(&rs->lock);
	listens = rs->state == AW_RS_LISTENING;
	was_full = rs->was_full;
	*accepted = listens ? queue_pop(rs) : NULL;
	pthread_mutex_unlock(&rs->lock);
	if (*accepted && was_full)
		aw_xs_executor_wake();
	if (!listens)
		return -EINVAL;
	return *accepted ? 0 : -EAGAIN;
}

/* A connection that gets no descriptor is closed. */
int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct aw_rs *rs = aw_rs_enter(socket), *accepted;
	int err, fd;

	if (!rs)
		return -1;
	if (rs->datagram)
		return (int)aw_rs_leave(rs, -EOPNOTSUPP);
	while ((err = take_accepted(rs, &accepted)) == -EAGAIN && aw_rs_may_block(rs, 0)) {
		err = aw_rs_wait_fd(rs, POLLIN, rs->options.recv_timeout_ns);
		if (err < 0)
			return (int)aw_rs_leave(rs, err);
	}
	if (err)
		return (int)aw_rs_leave(rs, err);
	if (addr && addrlen)
		aw_rs_name_get(accepted, true, addr, addrlen);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	err = fd < 0 ? -errno : aw_rs_table_insert(accepted, fd);
	if (err < 0)
		aw_rs_destroy(accepted);
	return (int)aw_rs_leave(rs, err);
}
