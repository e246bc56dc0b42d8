// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution for rdma_cm's UDP port space: a client that wants to send datagrams to a
// service sends a request to the service's UDP port, and gets the QP and the Q_Key in the reply.
// The client repeats a lost request, and the server replies to a known request as before.
#ifndef NET_SIDR_H
#define NET_SIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_SIDR_PD_MAX 255

#define AW_SIDR_REJECTED 2 /* as in InfiniBand's SIDR_REP */

/*
 * A client sends its request so often, which takes a minute as Linux's rdma_cm does, and a server replies to it so often: who sends
 * requests under the address of somebody else gets no more out of one.
 */
#define AW_SIDR_TRIES_MAX 33

struct aw_sidr_answer {
	uint8_t status; /* 0: success */
	uint32_t qpn, qkey; /* only with success */
	const void *pd;
	uint8_t pd_len;
};

/* The client's side. */

struct aw_sidr_ask;

/*
 * The result, once, on the progress thread: err 0 and an answer, valid for the call; ETIMEDOUT,
 * ECONNREFUSED (nothing listens at that port), or the network's error.
 */
typedef void aw_sidr_ask_fn(void *arg, int err, const struct aw_sidr_answer *answer);

/*
 * Sends requests over fd, which is connected to the peer, until a reply comes. 0, and fd belongs to
 * the ask; or ENOMEM ..., and fd stays the caller's.
 */
int aw_sidr_ask(int fd, const void *pd, uint8_t pd_len, aw_sidr_ask_fn *fn, void *arg,
		struct aw_sidr_ask **ask);
/* Called once, from any thread; fn may still run on the progress thread. */
void aw_sidr_ask_destroy(struct aw_sidr_ask *ask);

/* The server's side. */

struct aw_sidr_service;

/*
 * The two ends of a datagram, as recvmsg(2) writes and sendmsg(2) takes them: IPv4 may be mapped
 * into IPv6.
 */
struct aw_sidr_ends {
	struct sockaddr_storage peer;
	socklen_t peer_len;
	_Alignas(struct cmsghdr) uint8_t control[64]; /* an address of this host */
	size_t control_len;
};

struct aw_sidr_request {
	struct aw_sidr_service *service; /* the request holds a reference */
	struct aw_sidr_ends ends;
	uint64_t id;
	/* the address that the client sent to; ends.peer is the client */
	struct sockaddr_storage local;
	uint8_t pd_len;
	uint8_t pd[AW_SIDR_PD_MAX];
};

/*
 * Called on the progress thread with a request that is not known yet. When it returns true, the
 * request is the callee's; when false, the request is dropped and the client will repeat it.
 */
typedef bool aw_sidr_request_fn(void *arg, struct aw_sidr_request *request);

/* fd is bound. 0, and fd belongs to the service; or ENOMEM ..., and fd stays the caller's. */
int aw_sidr_listen(int fd, aw_sidr_request_fn *fn, void *arg, struct aw_sidr_service **service);
/*
 * Requests that were handed out can still be replied to; the port becomes free with the last of
 * them.
 */
void aw_sidr_service_destroy(struct aw_sidr_service *service);

/*
 * Sends the reply, and keeps it for repeated requests. 0, or an errno. Every request is freed at
 * last, with or without a reply.
 */
int aw_sidr_reply(struct aw_sidr_request *request, const struct aw_sidr_answer *answer);
void aw_sidr_request_free(struct aw_sidr_request *request);

#endif
