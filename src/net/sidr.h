// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution for rdma_cm's UDP port space: who wants to send datagrams to a service asks
// its UDP port, and is told the QP and the Q_Key. A lost question is asked again, and one that was
// heard already is answered as before.
#ifndef NET_SIDR_H
#define NET_SIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_SIDR_PD_MAX 255

#define AW_SIDR_REJECTED 2 /* as InfiniBand's SIDR_REP says it */

struct aw_sidr_answer {
	uint8_t status; /* 0: success */
	uint32_t qpn, qkey; /* of success */
	const void *pd;
	uint8_t pd_len;
};

/* Asking. */

struct aw_sidr_ask;

/*
 * What came of it, once, on the progress thread: err 0 and an answer, good for the call; ETIMEDOUT,
 * ECONNREFUSED (nobody has that port), or what the network says.
 */
typedef void aw_sidr_ask_fn(void *arg, int err, const struct aw_sidr_answer *answer);

/* fd is connected to the peer, and the question's from here on. 0, or ENOMEM ..., and fd the caller's. */
int aw_sidr_ask(int fd, const void *pd, uint8_t pd_len, aw_sidr_ask_fn *fn, void *arg,
		struct aw_sidr_ask **ask);
/* From any thread, once; fn may still run on the progress thread. */
void aw_sidr_ask_destroy(struct aw_sidr_ask *ask);

/* Answering. */

struct aw_sidr_service;

/* The two ends of a datagram, as recvmsg(2) and sendmsg(2) have them: IPv4 may be mapped into IPv6. */
struct aw_sidr_ends {
	struct sockaddr_storage peer;
	socklen_t peer_len;
	_Alignas(struct cmsghdr) uint8_t control[64]; /* an address of this host */
	size_t control_len;
};

struct aw_sidr_request {
	struct aw_sidr_service *service; /* held */
	struct aw_sidr_ends ends;
	uint64_t id;
	struct sockaddr_storage local; /* who is asked; ends.peer asks */
	uint8_t pd_len;
	uint8_t pd[AW_SIDR_PD_MAX];
};

/*
 * A question that is not known yet, on the progress thread. The request is the caller's if it returns
 * true; if not, the question was as if never heard, and will come again.
 */
typedef bool aw_sidr_request_fn(void *arg, struct aw_sidr_request *request);

/* fd is bound, and the service's from here on. 0, or ENOMEM ..., and fd the caller's. */
int aw_sidr_listen(int fd, aw_sidr_request_fn *fn, void *arg, struct aw_sidr_service **service);
/* Requests that are there can still be answered; the port is free when they are gone. */
void aw_sidr_service_destroy(struct aw_sidr_service *service);

/* Answers, for all times. 0, or an errno. Then, and for one that is not answered: free. */
int aw_sidr_reply(struct aw_sidr_request *request, const struct aw_sidr_answer *answer);
void aw_sidr_request_free(struct aw_sidr_request *request);

#endif
