// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Static probes (USDT) of the provider anywarp, for perf, bpftrace and SystemTap: docs/probes.md. A probe is a nop and
// a note in the library, and makes no call. A build without <sys/sdt.h> has none.
#ifndef NET_PROBE_H
#define NET_PROBE_H

#include "core/types.h"

#include <stddef.h>
#include <stdint.h>

#ifdef AW_HAVE_SDT
#include <sys/sdt.h>
#define AW_PROBE2(name, a, b) DTRACE_PROBE2(anywarp, name, a, b)
#define AW_PROBE4(name, a, b, c, d) DTRACE_PROBE4(anywarp, name, a, b, c, d)
#define AW_PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(anywarp, name, a, b, c, d, e)
#else
#define AW_PROBE2(name, a, b) ((void)(a), (void)(b))
#define AW_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define AW_PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

/* A WR was posted to the QP's send queue. */
static inline void aw_probe_post(uint32_t qpn, const struct aw_swqe *wqe)
{
	AW_PROBE4(post, qpn, wqe->wr_id, wqe->op, wqe->len);
}

/* The QP's carrier, or for a datagram its UDP socket, has taken so many bytes. */
static inline void aw_probe_transmit(uint32_t qpn, size_t bytes)
{
	AW_PROBE2(transmit, qpn, bytes);
}

/* So many bytes have come for the QP. */
static inline void aw_probe_receive(uint32_t qpn, size_t bytes)
{
	AW_PROBE2(receive, qpn, bytes);
}

/* A CQE of the QP goes into its CQ. */
static inline void aw_probe_complete(uint32_t qpn, enum aw_queue queue, const struct aw_cqe *cqe)
{
	AW_PROBE5(complete, qpn, cqe->wr_id, queue, cqe->status, cqe->byte_len);
}

#endif
