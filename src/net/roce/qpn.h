// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QP numbers of the roce persona. A program gives its peer only a GID and 24 bits, so the number
// tells at which port of that address the QP is: its upper 16 bits. The lower 8 bits tell up to 256
// QPs of one process apart. A port is a TCP listener and a UDP socket with the same number: RC QPs
// are reached by the listener, UD QPs by the socket. The port is open while one of its QPs lives.
#ifndef NET_QPN_H
#define NET_QPN_H

#include "net/conn/conn.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_QPN_INDEX_BITS 8
#define AW_QPN_OF_PORT (1u << AW_QPN_INDEX_BITS) /* QPs of one port */

/*
 * Takes a number for a QP. handle: an RC QP's, by which the number finds it; AW_TABLE_NONE for a UD
 * QP, which its socket finds (net/ud/udsock.h). The caller holds an engine reference until it gives
 * the number back. 0, or EADDRINUSE (no port is free in both protocols), EMFILE, ENFILE, ENOMEM ...
 */
int aw_qpn_take(uint32_t handle, uint32_t *qpn);

/*
 * Gives the number back. With its last number a port closes and waits for events of its listener,
 * so the caller is not in an event and holds no lock that an event may want.
 */
void aw_qpn_give(uint32_t qpn);

/*
 * The RC QP with this number, in either persona, held until aw_uqp_put; NULL when there is none. For
 * rdma_cm, where a program gives only the number, and for peers' Requests.
 */
struct aw_uqp *aw_qpn_get(uint32_t qpn);

/* The number of ports of this process: each is one listener. */
uint32_t aw_qpn_ports(void);

/*
 * The UDP socket of the number's port (non-blocking, bound to any address, of both families if the
 * host has both), valid until the number is given back; -1 when the number is not taken.
 */
int aw_qpn_udp(uint32_t qpn);

/*
 * False when no process of this host, in the caller's network namespace, can have a QP of that number: its port is free.
 * True where that cannot be known, or another program has the port.
 */
bool aw_qpn_is_of_host(uint32_t qpn);

/* Of a peer that is not of this host, in the log; examples and a parenthesis follow. */
#define AW_QPN_NO_GRH \
	"a path without GRH leads to this host alone: the program gave a lid, where RoCE needs a gid (ah_attr.is_global, grh.dgid"

static inline uint16_t aw_qpn_port(uint32_t qpn)
{
	return (uint16_t)(qpn >> AW_QPN_INDEX_BITS);
}

#endif
