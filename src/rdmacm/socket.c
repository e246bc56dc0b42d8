// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Binding a TCP or a UDP socket with the port rules of rdma_cm: a port that another id or program
// holds is in use, a port where only old connections remain is free. SO_REUSEADDR alone would let
// two ids bind one port; without it a server could not be started again at once. So both are tried
// in turn.
#include "rdmacm/socket.h"

#include "rdmacm/address.h"
#include "rdmacm/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <unistd.h>

void aw_cm_socket_set_reuse(int fd, bool on)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ on }, sizeof(int));
}

void aw_cm_socket_set_tos(const struct aw_cm_id *cm, int fd)
{
	int tos = cm->tos;

	if (fd < 0 || !cm->tos_set)
		return;
	setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

static int open_socket(const struct aw_cm_id *cm, int family)
{
	int type = cm->ud ? SOCK_DGRAM : SOCK_STREAM;
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (family == AF_INET6 && cm->af_only_set)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ cm->af_only }, sizeof(int));
	aw_cm_socket_set_tos(cm, fd);
	return fd;
}

/* Binds. *bound: the address with the port, or with port 0 where it is not known yet. */
typedef int bind_fn(const struct aw_cm_id *cm, int fd, const struct sockaddr *addr,
		    struct sockaddr_storage *bound);

static int bind_port(const struct aw_cm_id *cm, int fd, const struct sockaddr *addr,
		     struct sockaddr_storage *bound)
{
	socklen_t len = aw_address_len(addr->sa_family);

	aw_address_copy(bound, addr);
	aw_cm_socket_set_reuse(fd, cm->reuse_addr);
	if (bind(fd, addr, len) == 0)
		return 0;
	if (errno != EADDRINUSE || cm->reuse_addr || cm->ud)
		return errno;
	aw_cm_socket_set_reuse(fd, true);
	int err = bind(fd, addr, len) < 0 ? errno : 0;

	aw_cm_socket_set_reuse(fd, false);
	return err;
}

static int bind_any(const struct aw_cm_id *cm, int fd, const struct sockaddr *addr,
		    struct sockaddr_storage *bound)
{
	(void)cm;
	return aw_cm_port_bind(fd, addr, bound);
}

static int bind_shared(const struct aw_cm_id *cm, int fd, const struct sockaddr *addr,
		       struct sockaddr_storage *bound)
{
	(void)cm;
	aw_cm_socket_set_reuse(fd, true);
	return aw_cm_port_share(fd, addr, bound);
}

static int bind_late(const struct aw_cm_id *cm, int fd, const struct sockaddr *addr,
		     struct sockaddr_storage *bound)
{
	(void)cm;
	aw_address_copy(bound, addr);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){ 1 }, sizeof(int));
	return bind(fd, addr, aw_address_len(addr->sa_family)) < 0 ? errno : 0;
}

static int make(struct aw_cm_id *cm, const struct sockaddr *addr, bind_fn *bind_it)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int fd = open_socket(cm, addr->sa_family);

	if (fd < 0)
		return errno;
	int err = bind_it(cm, fd, addr, &bound);

	if (err) {
		close(fd);
		return err;
	}
	if (aw_address_port((struct sockaddr *)&bound) == 0)
		getsockname(fd, (struct sockaddr *)&bound, &len);
	cm->id.route.addr.src_storage = bound;
	cm->fd = fd;
	cm->fd_has_src = bind_it != bind_late && !aw_address_is_wildcard(addr);
	return 0;
}

int aw_cm_socket_again(const struct aw_cm_id *cm, const struct sockaddr *src, bool any_port,
		       int *out)
{
	struct sockaddr_storage addr, bound;
	int fd = open_socket(cm, src->sa_family);

	if (fd < 0)
		return errno;
	aw_address_copy(&addr, src);
	if (any_port)
		aw_address_set_port((struct sockaddr *)&addr, 0);
	aw_cm_socket_set_reuse(fd, true);
	int err = bind_late(cm, fd, (struct sockaddr *)&addr, &bound);

	if (err)
		close(fd);
	else
		*out = fd;
	return err;
}

int aw_cm_socket_bind(struct aw_cm_id *cm, const struct sockaddr *addr)
{
	return make(cm, addr, bind_port);
}

int aw_cm_socket_bind_any(struct aw_cm_id *cm, const struct sockaddr *addr)
{
	return make(cm, addr, bind_any);
}

int aw_cm_socket_bind_shared(struct aw_cm_id *cm, const struct sockaddr *addr)
{
	return make(cm, addr, bind_shared);
}

int aw_cm_socket_bind_late(struct aw_cm_id *cm, const struct sockaddr *addr)
{
	return make(cm, addr, bind_late);
}

int aw_cm_socket_own_port(struct aw_cm_id *cm)
{
	struct sockaddr_storage src = cm->id.route.addr.src_storage;

	if (!cm->reuse_addr)
		return 0;
	if (cm->fd >= 0)
		close(cm->fd);
	cm->fd = -1;
	cm->reuse_addr = false;
	int err = aw_cm_socket_bind(cm, (struct sockaddr *)&src);

	if (err) {
		cm->reuse_addr = true;
		(void)aw_cm_socket_bind(cm, (struct sockaddr *)&src);
	}
	return err;
}

/*
 * The families of a bound socket are fixed, so another one takes its place. The two share the port for that long, and
 * with nobody else: a socket that does not allow it is in the way of both.
 */
int aw_cm_socket_match_families(struct aw_cm_id *cm)
{
	const struct sockaddr *src = &cm->id.route.addr.src_addr;
	socklen_t len = sizeof(int);
	int only;

	if (!cm->af_only_set || src->sa_family != AF_INET6 || !aw_address_is_wildcard(src) ||
	    getsockopt(cm->fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) < 0 || !only == !cm->af_only)
		return 0;
	int fd = open_socket(cm, AF_INET6);

	if (fd < 0)
		return errno;
	aw_cm_socket_set_reuse(cm->fd, true);
	aw_cm_socket_set_reuse(fd, true);
	int err = bind(fd, src, aw_address_len(AF_INET6)) < 0 ? errno : 0;

	close(err ? fd : cm->fd);
	if (!err)
		cm->fd = fd;
	aw_cm_socket_set_reuse(cm->fd, cm->reuse_addr);
	return err;
}
