// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The victim: a program on the public interface alone that an attacker's test drives, a line to
// ask and a line to answer. What goes wrong on its own side ends it at once (CHECK, link.h).
#ifndef HOSTILE_VICTIM_H
#define HOSTILE_VICTIM_H

#include "link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASK_MAX 8 /* numbers in one line */
#define PDS 3
#define WAIT_MS 20000 /* far more than anything takes: a wait that long has failed */

/* One line: a word, numbers in any of C's notations, and last what is no number. */
struct ask {
	unsigned int count;
	uint64_t n[ASK_MAX];
	const char *text; /* never NULL */
};

/* The protection domains, and the SRQ of the first; made on demand, of the one device. */
struct ibv_pd *victim_pd(uint64_t number);
struct ibv_srq *victim_srq(void);

/* Where it listens, and its attacker. */
struct in_addr victim_address(void);

int64_t now_ms(void);

/* Each answers with one line on standard output. */
void regions_open(const struct ask *ask); /* pd access len place: region stag address */
void regions_close(const struct ask *ask); /* region: its memory stays and is watched */
void regions_register(const struct ask *ask); /* region pd access: the same memory anew */
void regions_revoke(const struct ask *ask); /* region: deregister, then write other octets there */
void regions_expect(const struct ask *ask); /* region offset hex: what the peer may have changed */
void regions_check(const struct ask *ask); /* ok, or damage and where */
void regions_dump(const struct ask *ask); /* region offset len */

/* Octets of a region for a WR. */
struct ibv_sge regions_sge(uint64_t region, uint64_t offset, uint64_t len);

struct ibv_mr *regions_mr(uint64_t region);

void windows_open(const struct ask *ask); /* type conn region offset len access: window stag */
void windows_rebind(const struct ask *ask); /* window conn region offset len access: stag */
void windows_close(const struct ask *ask); /* window */

struct ibv_qp *conns_qp(uint64_t conn);
void conns_listen(void);
uint16_t conns_port(void);
void conns_accept(const struct ask *ask); /* pd srq ird ord cqes: conn qpn */
void conns_connect(const struct ask *ask); /* port pd ird ord: conn qpn; does not wait */
void conns_event(const struct ask *ask); /* conn type: waits; its status */
void conns_failed(const struct ask *ask); /* conn: waits; the event that says so */
void conns_recv(const struct ask *ask); /* conn wr region offset len */
void conns_srq_recv(const struct ask *ask); /* wr region offset len */
void conns_srq_limit(const struct ask *ask); /* limit */
void conns_send(const struct ask *ask); /* conn wr opcode region offset len stag to */
void conns_poll(const struct ask *ask); /* conn count: waits; wr:status:opcode:octets ... */
void conns_async(const struct ask *ask); /* type or ffffffff, qpn or 0: waits; the type */
void conns_disconnect(const struct ask *ask); /* conn */
void conns_drop(const struct ask *ask); /* conn */
void conns_refuse(const struct ask *ask); /* Requests that nobody accepted: how many */

/* A connection between two honest ends of this process that never stops and checks every octet. */
void honest_start(void);
uint64_t honest_rounds(void);

#endif
