// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ports that QP numbers are made of.
#include "net/roce/qpn.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/conn/listener.h"
#include "net/roce/rc.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define TRIES_MAX 64 /* the kernel proposes a TCP port each time */
#define BACKLOG 1024 /* a thousand QPs of one peer may call at the same time */

struct number {
	bool taken;
	uint32_t handle;
};

struct port {
	/* fixed after open */
	uint16_t port;
	uint32_t generation;
	struct aw_listener *listener;
	int tcp_fd; /* the listener's */
	int udp_fd;
	/* guarded by lock */
	TAILQ_ENTRY(port) entry;
	uint32_t taken;
	/* where the search for a free number starts, so that a number given back is reused last */
	uint32_t next;
	struct number numbers[AW_QPN_OF_PORT];
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, port) ports AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(ports);

static int port_open(struct port **opened);

/* In the child of a fork the parent's ports are dead; its QPs may still be destroyed. */
static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = aw_rc_fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_QPNS, &fork_handlers);
}

static uint32_t number_take(struct port *port, uint32_t handle) AW_REQUIRES(lock)
{
	uint32_t index = port->next;

	while (port->numbers[index].taken)
		index = (index + 1) % AW_QPN_OF_PORT;
	port->numbers[index] = (struct number){ true, handle };
	port->next = (index + 1) % AW_QPN_OF_PORT;
	port->taken++;
	return (uint32_t)port->port << AW_QPN_INDEX_BITS | index;
}

/* A port of this process that has a number left, or NULL. */
static struct port *port_with_room(void) AW_REQUIRES(lock)
{
	struct port *port;

	TAILQ_FOREACH(port, &ports, entry)
	if (port->taken < AW_QPN_OF_PORT && port->generation == aw_fork_generation())
		return port;
	return NULL;
}

uint32_t aw_qpn_ports(void)
{
	uint32_t count = 0;
	struct port *port;

	aw_lock(&lock);
	TAILQ_FOREACH(port, &ports, entry)
	count += port->generation == aw_fork_generation();
	aw_unlock(&lock);
	return count;
}

static struct port *port_find(uint32_t qpn) AW_REQUIRES(lock)
{
	struct port *port;

	TAILQ_FOREACH(port, &ports, entry)
	if (port->port == aw_qpn_port(qpn) && port->numbers[qpn % AW_QPN_OF_PORT].taken)
		return port;
	return NULL;
}

int aw_qpn_take(uint32_t handle, uint32_t *qpn)
{
	struct port *port;
	int err = 0;

	aw_lock(&lock);
	port = port_with_room();
	if (!port) {
		err = port_open(&port);
		if (!err)
			TAILQ_INSERT_TAIL(&ports, port, entry);
	}
	if (!err)
		*qpn = number_take(port, handle);
	aw_unlock(&lock);
	return err;
}

void aw_qpn_give(uint32_t qpn)
{
	struct port *port;
	bool last;

	aw_lock(&lock);
	port = port_find(qpn);
	assert(port);
	port->numbers[qpn % AW_QPN_OF_PORT].taken = false;
	last = --port->taken == 0;
	if (last)
		TAILQ_REMOVE(&ports, port, entry);
	aw_unlock(&lock);
	if (last) {
		aw_listener_destroy(port->listener);
		aw_close_now(port->udp_fd);
		free(port);
	}
}

struct aw_uqp *aw_qpn_get(uint32_t qpn)
{
	uint32_t handle = AW_TABLE_NONE;
	struct aw_uqp *qp;
	struct port *port;

	if (!aw_persona_is_roce())
		return qpn < AW_QPN_FIRST ? NULL : aw_uqp_at(qpn - AW_QPN_FIRST);
	aw_lock(&lock);
	port = port_find(qpn);
	if (port)
		handle = port->numbers[qpn % AW_QPN_OF_PORT].handle;
	aw_unlock(&lock);

	/* The QP may be destroyed meanwhile, and its handle be another one's. */
	qp = aw_uqp_at(handle);
	if (!qp || qp->qpn == qpn)
		return qp;
	aw_uqp_put(qp);
	return NULL;
}

int aw_qpn_udp(uint32_t qpn)
{
	struct port *port;
	int fd;

	aw_lock(&lock);
	port = port_find(qpn);
	fd = port ? port->udp_fd : -1;
	aw_unlock(&lock);
	return fd;
}

/* Each port of QP numbers holds the UDP port, too, and without SO_REUSEADDR, which makes the bind fail. */
bool aw_qpn_is_of_host(uint32_t qpn)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(aw_qpn_port(qpn)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return true;
	bool taken = bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0;

	aw_close_now(fd);
	return taken;
}

/*
 * Binds a socket to any address, of both families where the host has both. *port: 0 for any port,
 * whose number is then written.
 */
static int bind_any(int type, int family, uint16_t *port)
{
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(*port) };
	bool is_in6 = family == AF_INET6;
	struct sockaddr *addr = is_in6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in;
	socklen_t len = is_in6 ? sizeof(in6) : sizeof(in);
	int err;

	if (fd < 0)
		return -errno;
	if (is_in6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int));
	if (bind(fd, addr, len) == 0 && getsockname(fd, addr, &len) == 0) {
		*port = ntohs(is_in6 ? in6.sin6_port : in.sin_port);
		return fd;
	}
	err = errno;
	aw_close_now(fd);
	return -err;
}

/* Binds two sockets with one number. 0, or an errno; after EADDRINUSE another try may succeed. */
static int bind_both(int family, struct port *port)
{
	port->port = 0;
	port->tcp_fd = bind_any(SOCK_STREAM, family, &port->port);
	if (port->tcp_fd < 0)
		return -port->tcp_fd;
	port->udp_fd = bind_any(SOCK_DGRAM, family, &port->port);
	if (port->udp_fd >= 0)
		return 0;
	aw_close_now(port->tcp_fd);
	return -port->udp_fd;
}

static int port_open(struct port **opened)
{
	struct port *port = calloc(1, sizeof(*port));
	struct aw_mpa_local local;
	int err = EADDRINUSE;

	if (!port)
		return ENOMEM;
	port->generation = aw_fork_generation();
	for (int i = 0; i < TRIES_MAX && err == EADDRINUSE; i++) {
		err = bind_both(AF_INET6, port);
		/* A host may be without IPv6. */
		if (err == EAFNOSUPPORT || err == EADDRNOTAVAIL)
			err = bind_both(AF_INET, port);
	}
	if (err)
		goto free_port;
	err = aw_rc_mpa_local(&local);
	if (!err)
		err = aw_listener_create(port->tcp_fd, BACKLOG, &local, aw_rc_on_request, port,
					 &port->listener);
	if (err)
		goto close_fds;
	*opened = port;
	return 0;

close_fds:
	aw_close_now(port->tcp_fd);
	aw_close_now(port->udp_fd);
free_port:
	free(port);
	aw_log(AW_LOG_ERROR, "no port for qp numbers: %s", strerror(err));
	return err;
}
