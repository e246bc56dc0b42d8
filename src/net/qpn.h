// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QP numbers of the roce persona. A program gives its peer a GID and 24 bits, and no more; so the
// number says which port of that address to ask: its upper 16 bits. The lower 8 tell up to 256 QPs
// of one process apart. A port is a TCP listener and a UDP socket with the same number: RC QPs are
// reached by the one, UD QPs by the other. It is open while one of its QPs lives.
#ifndef NET_QPN_H
#define NET_QPN_H

#include "net/conn.h"

#include <stdint.h>

#define AW_QPN_INDEX_BITS 8
#define AW_QPN_OF_PORT (1u << AW_QPN_INDEX_BITS) /* QPs of one port */

/*
 * A number for the QP of that handle, by which an RC one is found; AW_TABLE_NONE: a UD one, which
 * its socket finds (net/udsock.h). The caller holds an engine reference until it gave it back. 0, or
 * EADDRINUSE (no port is free in both protocols), EMFILE, ENFILE, ENOMEM ...
 */
int aw_qpn_take(uint32_t handle, uint32_t *qpn);

/*
 * Gives it back. The last one of a port closes it, and waits for events of its listener: not from an event,
 * and with no lock that one may want.
 */
void aw_qpn_give(uint32_t qpn);

/* The handle of the RC QP with that number; AW_TABLE_NONE when there is none. */
uint32_t aw_qpn_handle(uint32_t qpn);

/* How many ports there are of this process: each is one listener. */
uint32_t aw_qpn_ports(void);

/* The UDP socket of its port (non-blocking, bound to any address, of both families if the host has
 * both), the number's until it is given back; -1 when there is no such number. */
int aw_qpn_udp(uint32_t qpn);

static inline uint16_t aw_qpn_port(uint32_t qpn)
{
	return (uint16_t)(qpn >> AW_QPN_INDEX_BITS);
}

/* In the child of a fork the parent's ports are dead; its QPs may still be destroyed. */
void aw_qpn_fork_prepare(void);
void aw_qpn_fork_done(void);

#endif
