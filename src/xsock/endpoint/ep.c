// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint's creation, its bytes, and its options.
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xsock/base/iov.h"

#define SEND_DEFAULT (1u << 19)
#define RECV_DEFAULT (1u << 19)
#define RECV_START (1u << 17) /* the receive ring's first size; it doubles when bytes fill it */
#define QUEUE_DEFAULT 384u
#define INLINE_DEFAULT 64u
#define COMBINE_WRS 64u /* so many WRs without a known completion begin the combining of messages */
/* fewer bytes than that may wait for others, to go out in one message */
#define COMBINE_BYTES 4096u
#define PAGE 4096u

static uint32_t option_clamp(uint32_t value, uint32_t standard, uint32_t least, uint32_t most)
{
	if (value == 0)
		value = standard;
	return value < least ? least : value > most ? most : value;
}

static size_t page_align(size_t len)
{
	return (len + PAGE - 1) / PAGE * PAGE;
}

/*
 * Maps the endpoint's memory: the send ring and the messages of receives; behind these, in pages that the
 * peer may write, the receive ring and the tables.
 */
static int map_memory(struct aw_xs_ep *ep, struct aw_xs_memory *mem)
{
	const struct aw_xs_options *o = &ep->options;
	size_t messages = (size_t)(o->rq_size + AW_XS_RQ_SPARE) * AW_XS_MSG_LEN, target_at;
	uint32_t start = o->rcvbuf, times = 1;

	ep->messages_at = page_align(o->sndbuf);
	ep->shared_at = ep->messages_at + page_align(messages);
	target_at = ep->shared_at + page_align(o->rcvbuf);
	ep->memory_len = target_at + page_align(aw_xs_target_len(o->iomap_size));
	ep->memory = mmap(NULL, ep->memory_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (ep->memory == MAP_FAILED)
		return -ENOMEM;
	*mem = (struct aw_xs_memory){
		.send = ep->memory,
		.send_len = o->sndbuf,
		.recv = ep->memory + ep->shared_at,
		.target = ep->memory + target_at,
		.iomaps = o->iomap_size,
	};
	/* The receive ring reaches its size by doubling recv_start. */
	for (; start > RECV_START; start /= 2)
		times *= 2;
	mem->recv_start = start - start % AW_XS_SGL_MAX;
	mem->recv_len = mem->recv_start * times;
	return 0;
}

int aw_xs_ep_create(const struct aw_xs_options *o, struct aw_xs_ep **created)
{
	struct aw_xs_ep *ep = calloc(1, sizeof(*ep));
	struct aw_xs_options *own;
	struct aw_xs_memory mem;

	if (!ep)
		return -ENOMEM;
	own = &ep->options;
	if (o)
		*own = *o;
	own->sndbuf = option_clamp(own->sndbuf, SEND_DEFAULT, AW_XS_RING_MIN, AW_XS_RING_MAX);
	own->rcvbuf = option_clamp(own->rcvbuf, RECV_DEFAULT, AW_XS_RING_MIN, AW_XS_RING_MAX);
	own->sq_size = (uint16_t)option_clamp(own->sq_size, QUEUE_DEFAULT, AW_XS_QUEUE_MIN,
					      AW_XS_QUEUE_MAX);
	own->rq_size = (uint16_t)option_clamp(own->rq_size, QUEUE_DEFAULT, AW_XS_QUEUE_MIN,
					      AW_XS_QUEUE_MAX);
	own->inline_data = option_clamp(own->inline_data, INLINE_DEFAULT, AW_XS_IOMAP_LEN, 512);
	own->iomap_size = aw_xs_iomaps_round(own->iomap_size);

	if (map_memory(ep, &mem) != 0) {
		free(ep);
		return -ENOMEM;
	}
	aw_xs_stream_init(&ep->stream, &mem, own->sq_size, own->rq_size);
	ep->nodelay = own->nodelay;
	ep->pid = getpid();
	pthread_mutex_init(&ep->lock, NULL);
	pthread_cond_init(&ep->changed, NULL);
	TAILQ_INIT(&ep->maps);
	aw_xs_service_join(ep);
	*created = ep;
	return 0;
}

/* The order is rdma_cm's and verbs': maps and QP, then ids, then their channel. Unchecked: no other thread has the endpoint. */
void aw_xs_ep_free(struct aw_xs_ep *ep) AW_UNCHECKED
{
	aw_xs_ep_free_maps(ep);
	aw_xs_ep_qp_destroy(ep);
	if (ep->id)
		rdma_destroy_id(ep->id);
	if (ep->listen_id)
		rdma_destroy_id(ep->listen_id);
	if (ep->events)
		rdma_destroy_event_channel(ep->events);
	munmap(ep->memory, ep->memory_len);
	pthread_cond_destroy(&ep->changed);
	pthread_mutex_destroy(&ep->lock);
	free(ep);
}

short aw_xs_ep_ready(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->poller && pthread_equal(ep->poller_id, pthread_self()))
		ep->poller = false;
	aw_xs_ep_progress(ep);
	ep->ready_changes = ep->changes;
	short bits = aw_xs_ep_bits(ep);

	aw_xs_ep_unlock(ep);
	return bits;
}

static int take_error(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	int error = ep->error;

	ep->error = 0;
	return error;
}

int aw_xs_ep_error(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	int error = take_error(ep);

	aw_xs_ep_unlock(ep);
	return error;
}

static enum aw_xs_state state_of(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	switch (ep->phase) {
	case AW_XS_PHASE_IDLE:
		return AW_XS_IDLE;
	case AW_XS_PHASE_ADDR:
	case AW_XS_PHASE_ROUTE:
	case AW_XS_PHASE_REQUEST:
	case AW_XS_PHASE_REPLY:
		return AW_XS_CONNECTING;
	case AW_XS_PHASE_UP:
	case AW_XS_PHASE_OVER:
		break;
	}
	if (ep->stream.error)
		return AW_XS_FAILED;
	return aw_xs_stream_is_done(&ep->stream) ? AW_XS_CLOSED : AW_XS_ESTABLISHED;
}

enum aw_xs_state aw_xs_ep_state(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	enum aw_xs_state state = state_of(ep);

	aw_xs_ep_unlock(ep);
	return state;
}

/* Returns the negative errno of a send, or 0 if bytes can be taken. */
static int send_refusal(struct aw_xs_ep *ep, int flags) AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;

	if (ep->phase == AW_XS_PHASE_IDLE)
		return -ENOTCONN;
	if (ep->error)
		return -take_error(ep);
	if (s->error || s->tx_wanted != AW_XS_OPEN || s->rx_end == AW_XS_GONE)
		return -EPIPE;
	if (flags & MSG_OOB && !(s->ext & AW_XS_EXT_URGENT))
		return s->met ? -EOPNOTSUPP : -EAGAIN;
	return 0;
}

static ssize_t send_locked(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags)
	AW_REQUIRES(ep->lock)
{
	int refusal = send_refusal(ep, flags);
	size_t len = aw_iov_length(iov, (size_t)n);
	uint32_t min = 0;
	size_t taken;

	if (refusal || len == 0)
		return refusal;
	if (aw_xs_stream_room(&ep->stream) < len)
		aw_xs_ep_progress(ep);
	taken = aw_xs_stream_put(&ep->stream, iov, n);
	if (taken == 0)
		return ep->stream.error ? send_refusal(ep, flags) : -EAGAIN;
	if (flags & MSG_OOB && taken == len)
		aw_xs_stream_put_urgent(&ep->stream);

	/*
	 * How many bytes a message has at least. With COMBINE_WRS messages posted that TCP has not taken, fewer bytes wait: they go out with
	 * the next ones, or when TCP has taken messages. The peer's credits do the same if the peer is behind.
	 */
	if (flags & MSG_MORE) {
		min = COMBINE_BYTES;
	} else if (!ep->nodelay && !(flags & MSG_OOB) && ep->stream.sq_used >= COMBINE_WRS) {
		aw_xs_ep_reap_sends(ep);
		min = ep->stream.sq_used < COMBINE_WRS ? 0 : COMBINE_BYTES;
	}
	aw_xs_ep_pump(ep, min);
	return (ssize_t)taken;
}

ssize_t aw_xs_ep_send(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags)
{
	pthread_mutex_lock(&ep->lock);
	ssize_t taken = send_locked(ep, iov, n, flags);

	aw_xs_ep_unlock(ep);
	return taken;
}

static ssize_t recv_urgent(struct aw_xs_ep *ep, const struct iovec *iov, int n, bool peek)
	AW_REQUIRES(ep->lock)
{
	uint8_t byte;
	int err;

	aw_xs_ep_progress(ep);
	err = aw_xs_stream_get_urgent(&ep->stream, peek, &byte);
	if (err)
		return err;
	for (int i = 0; i < n; i++)
		if (iov[i].iov_len > 0) {
			*(uint8_t *)iov[i].iov_base = byte;
			return 1;
		}
	return 0;
}

static ssize_t recv_locked(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags)
	AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;
	bool peek = flags & MSG_PEEK;
	size_t taken;

	if (flags & MSG_OOB)
		return recv_urgent(ep, iov, n, peek);
	if (aw_iov_length(iov, (size_t)n) == 0)
		return 0;
	/* A peek for more bytes than are there first makes progress. */
	if (aw_xs_stream_pending(s) < (peek ? aw_iov_length(iov, (size_t)n) : 1))
		aw_xs_ep_progress(ep);
	taken = aw_xs_stream_get(&ep->stream, iov, n, peek);
	if (taken > 0) {
		if (!peek)
			aw_xs_ep_pump(ep, 0);
		return (ssize_t)taken;
	}

	if (ep->phase == AW_XS_PHASE_IDLE)
		return -ENOTCONN;
	if (s->rx_end != AW_XS_OPEN)
		return 0;
	if (ep->error)
		return -take_error(ep);
	return s->error || ep->rd_shut ? 0 : -EAGAIN;
}

ssize_t aw_xs_ep_recv(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags)
{
	pthread_mutex_lock(&ep->lock);
	ssize_t taken = recv_locked(ep, iov, n, flags);

	aw_xs_ep_unlock(ep);
	return taken;
}

int aw_xs_ep_shutdown(struct aw_xs_ep *ep, int how)
{
	int err = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	pthread_mutex_lock(&ep->lock);
	if (ep->phase == AW_XS_PHASE_IDLE || (ep->phase == AW_XS_PHASE_OVER && ep->stream.error)) {
		err = -ENOTCONN;
	} else {
		ep->rd_shut |= how != SHUT_WR;
		if (how != SHUT_RD)
			aw_xs_stream_end(&ep->stream, AW_XS_SHUT);
		aw_xs_ep_pump(ep, 0);
		ep->changes++;
		ep->needs_nudge = true;
	}
	aw_xs_ep_unlock(ep);
	return err;
}

size_t aw_xs_ep_pending(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	size_t pending = aw_xs_stream_pending(&ep->stream);

	aw_xs_ep_unlock(ep);
	return pending;
}

size_t aw_xs_ep_unsent(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	aw_xs_ep_reap_sends(ep);
	size_t unsent = aw_xs_ep_is_over(ep) ? 0 : (size_t)(ep->stream.put - ep->stream.freed);

	ep->flush_awaited = unsent > 0;
	aw_xs_ep_unlock(ep);
	return unsent;
}

bool aw_xs_ep_at_mark(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	bool at_mark = aw_xs_stream_at_mark(&ep->stream);

	aw_xs_ep_unlock(ep);
	return at_mark;
}

void aw_xs_ep_set_nodelay(struct aw_xs_ep *ep, bool nodelay)
{
	pthread_mutex_lock(&ep->lock);
	ep->nodelay = nodelay;
	if (nodelay)
		aw_xs_ep_pump(ep, 0);
	aw_xs_ep_unlock(ep);
}

void aw_xs_ep_set_oobinline(struct aw_xs_ep *ep, bool oobinline)
{
	pthread_mutex_lock(&ep->lock);
	ep->stream.urgent_inline = oobinline;
	aw_xs_ep_unlock(ep);
}

static void copy_name(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	if (from && from->sa_family == AF_INET)
		memcpy(to, from, sizeof(struct sockaddr_in));
	else if (from && from->sa_family == AF_INET6)
		memcpy(to, from, sizeof(struct sockaddr_in6));
}

void aw_xs_ep_names(struct aw_xs_ep *ep, struct sockaddr_storage *local,
		    struct sockaddr_storage *peer)
{
	pthread_mutex_lock(&ep->lock);
	copy_name(local, ep->id ? rdma_get_local_addr(ep->id) : NULL);
	copy_name(peer, ep->id ? rdma_get_peer_addr(ep->id) : NULL);
	aw_xs_ep_unlock(ep);
}

void aw_xs_ep_stats(struct aw_xs_ep *ep, struct aw_xs_stats *stats)
{
	const struct aw_xs_stream *s = &ep->stream;

	pthread_mutex_lock(&ep->lock);
	*stats = (struct aw_xs_stats){
		.state = state_of(ep),
		.anywarp_peer = s->anywarp,
		.bytes_in = s->came,
		.bytes_out = s->bytes_out,
		.send_credits = (uint16_t)(s->seq_limit - s->seq),
		.receive_credits = s->rq_size - (uint16_t)(s->rseq - s->rseq_granted),
	};
	aw_xs_ep_unlock(ep);
}

struct ibv_pd *aw_xs_ep_pd(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	struct ibv_pd *pd = ep->pd;

	aw_xs_ep_unlock(ep);
	return pd;
}
