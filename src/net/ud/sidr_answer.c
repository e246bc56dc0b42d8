// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The server's side of SIDR. The latest requests are remembered: a repeated one that waits for the
// program is not new, and one that has a reply gets the same reply.
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/progress/engine.h"
#include "net/progress/watch.h"
#include "net/ud/sidr.h"
#include "ring/lock.h"
#include "wire/sidr.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define KNOWN_MAX 256
#define READS_MAX 16 /* per turn of the progress thread */

/* A known request and its reply. */
struct known {
	uint64_t id;
	struct sockaddr_storage peer;
	size_t len; /* bytes of the reply; 0: there is none yet */
	uint32_t sent; /* how often the reply was */
	uint8_t octets[SIDR_MAX];
};

struct aw_sidr_service {
	struct aw_watch watch; /* must be first */
	int fd, family;
	uint16_t port; /* network order */
	aw_sidr_request_fn *fn;
	void *arg;
	uint32_t generation;
	aw_mutex lock; /* guards what follows */
	uint32_t refs; /* of the owner and the requests */
	uint32_t next;
	struct known known[KNOWN_MAX];
};

static void on_event(struct aw_watch *w, uint32_t events);

static void put(struct aw_sidr_service *service)
{
	aw_lock(&service->lock);
	bool last = --service->refs == 0;

	aw_unlock(&service->lock);
	if (!last)
		return;
	aw_close_now(service->fd);
	pthread_mutex_destroy(&service->lock);
	free(service);
}

static void release(struct aw_watch *w)
{
	put((struct aw_sidr_service *)w);
}

/*
 * Has the kernel report the address that a request was sent to, because the reply has to come from
 * there.
 */
static int prepare(struct aw_sidr_service *service)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local), family_len = sizeof(service->family);
	int on = 1;

	if (getsockopt(service->fd, SOL_SOCKET, SO_DOMAIN, &service->family, &family_len) != 0 ||
	    getsockname(service->fd, (struct sockaddr *)&local, &len) != 0)
		return errno;
	service->port = service->family == AF_INET ? ((struct sockaddr_in *)&local)->sin_port
						   : ((struct sockaddr_in6 *)&local)->sin6_port;
	int failed =
		service->family == AF_INET
			? setsockopt(service->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on))
			: setsockopt(service->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));

	return failed ? errno : 0;
}

int aw_sidr_listen(int fd, aw_sidr_request_fn *fn, void *arg, struct aw_sidr_service **started)
{
	struct aw_sidr_service *service = calloc(1, sizeof(*service));
	int err;

	if (!service)
		return ENOMEM;
	service->fd = fd;
	service->fn = fn;
	service->arg = arg;
	service->refs = 1;
	service->generation = aw_fork_generation();
	pthread_mutex_init(&service->lock, NULL);
	err = prepare(service);
	*started = service;
	if (!err)
		err = aw_watch_add(&service->watch, fd, EPOLLIN, on_event, release);
	if (err) {
		pthread_mutex_destroy(&service->lock);
		free(service);
	}
	return err;
}

/* In the child of a fork the lock may stay taken for ever, so what it guards is left alone. */
void aw_sidr_service_destroy(struct aw_sidr_service *service)
{
	if (service->generation != aw_fork_generation()) {
		aw_close_now(service->fd);
		return;
	}
	if (aw_engine_is_self())
		aw_watch_remove(&service->watch);
	else
		aw_watch_remove_wait(&service->watch);
}

static struct msghdr message(struct aw_sidr_ends *ends, struct iovec *iov)
{
	return (struct msghdr){
		.msg_name = &ends->peer,
		.msg_namelen = ends->peer_len,
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = ends->control_len ? ends->control : NULL,
		.msg_controllen = ends->control_len,
	};
}

static ssize_t receive(struct aw_sidr_service *service, uint8_t *octets, size_t room,
		       struct aw_sidr_ends *ends)
{
	struct iovec iov = { octets, room };
	struct msghdr msg;
	ssize_t n;

	/* Peers are compared with the padding behind their addresses, so it is zeroed. */
	*ends = (struct aw_sidr_ends){ .peer_len = sizeof(ends->peer),
				       .control_len = sizeof(ends->control) };
	msg = message(ends, &iov);
	n = aw_recvmsg_now(service->fd, &msg);
	ends->peer_len = msg.msg_namelen;
	ends->control_len = msg.msg_controllen;
	return n;
}

/* Writes the address that the request was sent to. */
static bool name_local(const struct aw_sidr_service *service, struct aw_sidr_ends *ends,
		       struct sockaddr_storage *local)
{
	struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)local;
	struct sockaddr_in *to = (struct sockaddr_in *)local;
	struct msghdr msg = message(ends, NULL);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct in6_pktinfo in6;
	struct in_pktinfo in;

	if (!c || (service->family == AF_INET) != (c->cmsg_level == IPPROTO_IP))
		return false;
	local->ss_family = (sa_family_t)service->family;
	if (service->family == AF_INET) {
		memcpy(&in, CMSG_DATA(c), sizeof(in));
		to->sin_port = service->port;
		to->sin_addr = in.ipi_addr;
		return true;
	}
	memcpy(&in6, CMSG_DATA(c), sizeof(in6));
	to6->sin6_port = service->port;
	to6->sin6_addr = in6.ipi6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&in6.ipi6_addr))
		to6->sin6_scope_id = in6.ipi6_ifindex;
	return true;
}

static struct known *find(struct aw_sidr_service *service, uint64_t id,
			  const struct sockaddr_storage *peer) AW_REQUIRES(service->lock)
{
	for (uint32_t i = 0; i < KNOWN_MAX; i++) {
		struct known *known = &service->known[i];

		if (known->id == id && memcmp(&known->peer, peer, sizeof(*peer)) == 0)
			return known;
	}
	return NULL;
}

/*
 * Sends the reply, unless it was sent too often, from the address that the request came to: sendmsg(2) takes what recvmsg(2)
 * wrote.
 */
static int send_to(const struct aw_sidr_service *service, struct known *known,
		   struct aw_sidr_ends *ends) AW_REQUIRES(service->lock)
{
	struct iovec iov = { known->octets, known->len };
	struct msghdr msg = message(ends, &iov);

	if (known->sent++ >= AW_SIDR_TRIES_MAX)
		return 0;
	return aw_sendmsg_now(service->fd, &msg) < 0 ? errno : 0;
}

/* True when the request is known; a reply that exists is sent again. */
static bool answer_again(struct aw_sidr_service *service, const struct sidr_msg *msg,
			 struct aw_sidr_ends *ends) AW_REQUIRES(service->lock)
{
	struct known *known = find(service, msg->id, &ends->peer);

	if (!known || known->len == 0)
		return known != NULL;
	send_to(service, known, ends);
	return true;
}

static void remember(struct aw_sidr_service *service, const struct aw_sidr_request *request)
	AW_REQUIRES(service->lock)
{
	struct known *known = &service->known[service->next];

	service->next = (service->next + 1) % KNOWN_MAX;
	known->id = request->id;
	known->peer = request->ends.peer;
	known->len = 0;
	known->sent = 0;
}

static void forget(struct aw_sidr_service *service, const struct aw_sidr_request *request)
	AW_REQUIRES(service->lock)
{
	struct known *known = find(service, request->id, &request->ends.peer);

	if (known)
		memset(known, 0, sizeof(*known));
}

static struct aw_sidr_request *make(struct aw_sidr_service *service, const struct sidr_msg *msg,
				    struct aw_sidr_ends *ends)
{
	struct aw_sidr_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	if (!name_local(service, ends, &request->local)) {
		free(request);
		return NULL;
	}
	request->service = service;
	request->ends = *ends;
	request->id = msg->id;
	request->pd_len = msg->pd_len;
	memcpy(request->pd, msg->pd, msg->pd_len);
	return request;
}

/* The lock is released during the service's function. */
static void offer(struct aw_sidr_service *service, struct aw_sidr_request *request)
	AW_REQUIRES(service->lock)
{
	remember(service, request);
	service->refs++;
	aw_unlock(&service->lock);
	bool taken = service->fn(service->arg, request);

	aw_lock(&service->lock);
	if (taken)
		return;
	forget(service, request);
	service->refs--;
	free(request);
}

static void on_event(struct aw_watch *w, uint32_t events)
{
	struct aw_sidr_service *service = (struct aw_sidr_service *)w;

	(void)events;
	for (int i = 0; i < READS_MAX; i++) {
		uint8_t octets[SIDR_MAX + 1];
		struct sidr_msg msg;
		struct aw_sidr_ends ends;
		ssize_t n = receive(service, octets, sizeof(octets), &ends);

		if (n < 0)
			return;
		if (!sidr_parse(octets, (size_t)n, &msg) || msg.kind != SIDR_REQUEST)
			continue;
		aw_lock(&service->lock);
		if (!answer_again(service, &msg, &ends)) {
			struct aw_sidr_request *request = make(service, &msg, &ends);

			if (request)
				offer(service, request);
		}
		aw_unlock(&service->lock);
	}
}

int aw_sidr_reply(struct aw_sidr_request *request, const struct aw_sidr_answer *answer)
{
	struct aw_sidr_service *service = request->service;
	const struct sidr_msg msg = {
		.kind = SIDR_REPLY,
		.status = answer->status,
		.id = request->id,
		.qpn = answer->qpn,
		.qkey = answer->qkey,
		.pd_len = answer->pd_len,
		.pd = answer->pd,
	};
	struct known lost = { 0 }, *known;
	int err;

	aw_lock(&service->lock);
	known = find(service, request->id, &request->ends.peer);
	if (!known)
		known = &lost;
	known->len = sidr_build(&msg, known->octets);
	err = send_to(service, known, &request->ends);
	aw_unlock(&service->lock);
	/* A reply that is lost here is requested again, like one that is lost on the way. */
	return err == EAGAIN || err == ENOBUFS ? 0 : err;
}

void aw_sidr_request_free(struct aw_sidr_request *request)
{
	put(request->service);
	free(request);
}
