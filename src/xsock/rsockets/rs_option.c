// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsetsockopt, rgetsockopt, rfcntl. Options of the endpoint's creation have to be set before there
// is one; set on a listener they hold for connections that are accepted later.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/array.h"
#include "xsock/rsockets/rs_config.h"
#include "xsock/rsockets/rs_socket.h"

#define NS_PER_S 1000000000
#define NS_PER_US 1000
#define MAXSEG 2048 // the value of rdma-core's where no path is known
#define KEEPALIVE_MAX 32767

struct change {
	struct aw_rs *rs;
	const void *value;
	socklen_t len;
	int number; // the value as an int
};

static int64_t double_size(int value)
{
	return 2 * (int64_t)value;
}

static int set_flag(int *flag, const struct change *c)
{
	*flag = c->number != 0;
	return 0;
}

static int set_timeout(_Atomic int64_t *timeout_ns, const struct change *c)
{
	struct timeval time;

	if (c->len < sizeof(time))
		return -EINVAL;
	memcpy(&time, c->value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= 1000000)
		return -EDOM;
	int64_t ns = (int64_t)time.tv_sec * NS_PER_S + (int64_t)time.tv_usec * NS_PER_US;

	*timeout_ns = ns > 0 ? ns : -1;
	return 0;
}

static int set_socket(const struct change *c, int name) AW_REQUIRES(c->rs->lock)
{
	struct aw_rs_options *o = &c->rs->options;

	switch (name) {
	case SO_REUSEADDR:
		return set_flag(&o->reuse_addr, c);
	case SO_KEEPALIVE:
		return set_flag(&o->keepalive, c);
	case SO_OOBINLINE:
		if (aw_rs_ep(c->rs))
			aw_xs_ep_set_oobinline(aw_rs_ep(c->rs), c->number);
		return set_flag(&o->oobinline, c);
	case SO_RCVBUF:
		o->rcvbuf = aw_rs_config_clamp(double_size(c->number), AW_RS_BUFFER_MIN,
					       AW_RS_BUFFER_MAX);
		return 0;
	case SO_SNDBUF:
		o->sndbuf = aw_rs_config_clamp(double_size(c->number), AW_RS_BUFFER_MIN,
					       AW_RS_BUFFER_MAX);
		return 0;
	case SO_LINGER:
		if (c->len < sizeof(o->linger))
			return -EINVAL;
		memcpy(&o->linger, c->value, sizeof(o->linger));
		return 0;
	case SO_RCVTIMEO:
		return set_timeout(&o->recv_timeout_ns, c);
	case SO_SNDTIMEO:
		return set_timeout(&o->send_timeout_ns, c);
	default:
		return -ENOTSUP;
	}
}

static int set_tcp(const struct change *c, int name) AW_REQUIRES(c->rs->lock)
{
	struct aw_rs_options *o = &c->rs->options;

	switch (name) {
	case TCP_NODELAY:
		if (aw_rs_ep(c->rs))
			aw_xs_ep_set_nodelay(aw_rs_ep(c->rs), c->number);
		return set_flag(&o->nodelay, c);
	case TCP_KEEPIDLE:
		if (c->number <= 0 || c->number > KEEPALIVE_MAX)
			return -EINVAL;
		o->keepidle = c->number;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_ipv6(const struct change *c, int name) AW_REQUIRES(c->rs->lock)
{
	if (name != IPV6_V6ONLY)
		return -ENOTSUP;
	if (c->rs->state != AW_RS_NEW)
		return -EINVAL;
	c->rs->options.v6only_set = true;
	return set_flag(&c->rs->options.v6only, c);
}

static int set_rdma(const struct change *c, int name) AW_REQUIRES(c->rs->lock)
{
	struct aw_rs_options *o = &c->rs->options;
	uint32_t size = aw_rs_config_clamp(c->number, 0, AW_RS_QUEUE_SIZE_MAX);
	void *copy;

	if (c->rs->state == AW_RS_STREAM || c->number < 0)
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		o->sq_size = size < AW_RS_QUEUE_SIZE_MIN ? AW_RS_QUEUE_SIZE_MIN : size;
		return 0;
	case RDMA_RQSIZE:
		o->rq_size = size < AW_RS_QUEUE_SIZE_MIN ? AW_RS_QUEUE_SIZE_MIN : size;
		return 0;
	case RDMA_INLINE:
		o->inline_data = size;
		return 0;
	case RDMA_IOMAPSIZE:
		o->iomap_size = aw_rs_config_iomap_size((uint32_t)c->number);
		return 0;
	case RDMA_ROUTE:
		copy = malloc(c->len);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, c->value, c->len);
		free(c->rs->route);
		c->rs->route = copy;
		c->rs->route_len = c->len;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_option(const struct change *c, int level, int name)
{
	int err;

	if (!c->value || c->len < sizeof(int))
		return -EINVAL;
	if (c->rs->datagram && level != SOL_RDMA) {
		if (setsockopt(c->rs->fd, level, name, c->value, c->len))
			return -errno;
		// The time-outs are also the library's: it waits itself.
		if (level != SOL_SOCKET || (name != SO_RCVTIMEO && name != SO_SNDTIMEO))
			return 0;
	}
	pthread_mutex_lock(&c->rs->lock);
	switch (level) {
	case SOL_SOCKET:
		err = set_socket(c, name);
		break;
	case IPPROTO_TCP:
		err = set_tcp(c, name);
		break;
	case IPPROTO_IPV6:
		err = set_ipv6(c, name);
		break;
	case SOL_RDMA:
		err = set_rdma(c, name);
		break;
	default:
		err = -ENOTSUP;
	}
	pthread_mutex_unlock(&c->rs->lock);
	return err;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct change c = { .rs = aw_rs_enter(socket), .value = optval, .len = optlen };

	if (!c.rs)
		return -1;
	if (optval && optlen >= sizeof(c.number))
		memcpy(&c.number, optval, sizeof(c.number));
	return (int)aw_rs_leave(c.rs, set_option(&c, level, optname));
}

struct option_value {
	void *value;
	socklen_t *len;
};

static int store_value(const struct option_value *a, const void *value, socklen_t len)
{
	if (*a->len > len)
		*a->len = len;
	memcpy(a->value, value, *a->len);
	return 0;
}

static int store_number(const struct option_value *a, int64_t number)
{
	int value = (int)number;

	return store_value(a, &value, sizeof(value));
}

static int store_timeout(const struct option_value *a, int64_t timeout_ns)
{
	struct timeval time = { 0 };

	if (timeout_ns > 0)
		time = (struct timeval){ timeout_ns / NS_PER_S, timeout_ns % NS_PER_S / NS_PER_US };
	return store_value(a, &time, sizeof(time));
}

/* The options that programs get as they are in struct aw_rs_options. */
static const struct {
	int level, name;
	size_t at;
} numbers[] = {
	{ SOL_SOCKET, SO_REUSEADDR, offsetof(struct aw_rs_options, reuse_addr) },
	{ SOL_SOCKET, SO_KEEPALIVE, offsetof(struct aw_rs_options, keepalive) },
	{ SOL_SOCKET, SO_OOBINLINE, offsetof(struct aw_rs_options, oobinline) },
	{ SOL_SOCKET, SO_RCVBUF, offsetof(struct aw_rs_options, rcvbuf) },
	{ SOL_SOCKET, SO_SNDBUF, offsetof(struct aw_rs_options, sndbuf) },
	{ IPPROTO_TCP, TCP_NODELAY, offsetof(struct aw_rs_options, nodelay) },
	{ IPPROTO_TCP, TCP_KEEPIDLE, offsetof(struct aw_rs_options, keepidle) },
	{ IPPROTO_IPV6, IPV6_V6ONLY, offsetof(struct aw_rs_options, v6only) },
	{ SOL_RDMA, RDMA_SQSIZE, offsetof(struct aw_rs_options, sq_size) },
	{ SOL_RDMA, RDMA_RQSIZE, offsetof(struct aw_rs_options, rq_size) },
	{ SOL_RDMA, RDMA_INLINE, offsetof(struct aw_rs_options, inline_data) },
	{ SOL_RDMA, RDMA_IOMAPSIZE, offsetof(struct aw_rs_options, iomap_size) },
};

static int get_socket(struct aw_rs *rs, int name, const struct option_value *a)
	AW_REQUIRES(rs->lock)
{
	const struct aw_rs_options *o = &rs->options;

	switch (name) {
	case SO_LINGER:
		return store_value(a, &o->linger, sizeof(o->linger));
	case SO_RCVTIMEO:
		return store_timeout(a, o->recv_timeout_ns);
	case SO_SNDTIMEO:
		return store_timeout(a, o->send_timeout_ns);
	case SO_ERROR:
		return store_number(a, aw_rs_ep(rs) ? aw_xs_ep_error(aw_rs_ep(rs)) : 0);
	case SO_TYPE:
		return store_number(a, SOCK_STREAM);
	case SO_DOMAIN:
		return store_number(a, rs->domain);
	case SO_ACCEPTCONN:
		return store_number(a, rs->state == AW_RS_LISTENING);
	default:
		return -ENOTSUP;
	}
}

static int get_locked(struct aw_rs *rs, int level, int name, const struct option_value *a)
	AW_REQUIRES(rs->lock)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].level == level && numbers[i].name == name)
			return store_value(a, (const char *)&rs->options + numbers[i].at,
					   sizeof(int));
	if (level == SOL_SOCKET)
		return get_socket(rs, name, a);
	if (level == IPPROTO_TCP && (name == TCP_KEEPCNT || name == TCP_KEEPINTVL))
		return store_number(a, 1);
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return store_number(a, MAXSEG);
	if (level != SOL_RDMA || name != RDMA_ROUTE)
		return -ENOTSUP;
	if (*a->len < rs->route_len)
		return -EINVAL;
	return store_value(a, rs->route ? rs->route : "", rs->route_len);
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct option_value a = { optval, optlen };
	struct aw_rs *rs = aw_rs_enter(socket);
	int err;

	if (!rs)
		return -1;
	if (!optval || !optlen) {
		err = -EFAULT;
	} else if (rs->datagram && level != SOL_RDMA) {
		err = getsockopt(rs->fd, level, optname, optval, optlen) ? -errno : 0;
	} else {
		pthread_mutex_lock(&rs->lock);
		err = get_locked(rs, level, optname, &a);
		pthread_mutex_unlock(&rs->lock);
	}
	return (int)aw_rs_leave(rs, err);
}

int rfcntl(int socket, int cmd, ... /* arg */)
{
	struct aw_rs *rs = aw_rs_enter(socket);
	int arg, result = -ENOTSUP;
	va_list args;

	if (!rs)
		return -1;
	va_start(args, cmd);
	arg = cmd == F_SETFL || cmd == F_SETFD ? va_arg(args, int) : 0;
	va_end(args);
	switch (cmd) {
	case F_GETFL:
		result = atomic_load(&rs->flags) | O_RDWR;
		break;
	case F_SETFL:
		atomic_store(&rs->flags, arg & O_NONBLOCK);
		result = 0;
		break;
	case F_GETFD:
	case F_SETFD:
		result = fcntl(rs->fd, cmd, arg);
		result = result < 0 ? -errno : result;
		break;
	}
	return (int)aw_rs_leave(rs, result);
}
