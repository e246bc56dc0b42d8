// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Responders' QPs whose peer has a Reply, or is getting one, and whose first FPDU has not been received. While a thread is in send(2)
// with the Reply, the kernel keeps what the peer answers in the socket's backlog, and epoll does not report it: the
// peer's next connection would be found first. So the progress thread receives from these QPs before it reports a
// Request, and a program gets ESTABLISHED before the same client's next CONNECT_REQUEST.
#ifndef NET_REPLIED_H
#define NET_REPLIED_H

#include "net/qp/uqp.h"

/* Sends the Reply; 0, or the errno of to->start. */
int aw_replied_start(struct aw_uqp *qp, const struct aw_uqp_socket *to) AW_REQUIRES(qp->lock);
/* The peer's first FPDU has come, or the socket goes; any number of times. */
void aw_replied_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The handle of the first QP, which leaves the list, or AW_TABLE_NONE. The QP may end meanwhile. */
uint32_t aw_replied_take(void);

/*
 * In net/qp/uqp_progress.c: receives from each of the QPs, once: a peer that sends nothing after its Reply costs one turn.
 * Waits for threads that send a Reply just now.
 */
void aw_replied_serve(void);

#endif
