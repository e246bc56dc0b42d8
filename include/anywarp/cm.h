/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What anywarp's librdmacm.so.1 has beyond rdma-core's (symbol version ANYWARP_1.0): a connection
 * over a TCP socket that is connected already, as RFC 5044 7.1.3 has it ("delayed start-up"), and a
 * limit for sleeps. A program that also runs over rdma-core's library finds the functions by dlsym(3).
 */
#ifndef ANYWARP_CM_H
#define ANYWARP_CM_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Both functions take an established TCP socket (IPv4 or IPv6) over which both programs have read
 * all that the other one has written; one end initiates, the other one responds. Octets of the
 * peer's start-up that have arrived meanwhile may lie in it.
 *
 * On success fd is the library's: the program neither uses nor closes it any more. It is made
 * non-blocking and close-on-exec, its signals (O_ASYNC), SO_LINGER, SO_RCVLOWAT, TCP_CORK and
 * TCP_NOTSENT_LOWAT are put back to their defaults, and its keep-alive and time-outs become those
 * of every connection of the library. All but close-on-exec are of the open file, so that they
 * hold for fd's duplicates, too, and for those that other processes have; and the stream's end is
 * told by shutdown(2), so that it ends for them as well.
 *
 * On failure fd is the caller's still, with its flags as they were, and the id is as before.
 *
 * The peer's program may come late, as to any TCP connection: for its Request, its Reply, or the first
 * message behind a Reply, either end waits as long as TCP finds the peer there. Once the first octet of a
 * Request or Reply is here, the rest has ten seconds, and so has that message if rdma_accept waits
 * for it itself (an id of rdma_create_id(NULL, ...)).
 */

/*
 * The active end: id, fresh from rdma_create_id, becomes as after rdma_resolve_route to the peer,
 * with fd to connect over. rdma_create_qp and rdma_connect follow as ever; rdma_connect sends the
 * MPA Request, and its events are the same. One thing cannot be done on a given socket: a peer
 * that knows MPA revision 1 only, and therefore closes, is not asked again in revision 1.
 *
 * 0; or -1 with errno: EINVAL (id is NULL, or no longer fresh), EBADF, ENOTSOCK, EPROTONOSUPPORT (not
 * TCP), ENOTCONN (not connected, or not any more), or what opening the device says (ENODEV, EMFILE,
 * ENOMEM).
 */
int anywarp_cm_initiate(struct rdma_cm_id *id, int fd);

/*
 * The passive end: awaits the peer's MPA Request on fd. listen_id, fresh from rdma_create_id, needs
 * no address and stays fresh; it may be given any number of sockets. Of each comes exactly one
 * event on listen_id's channel:
 *
 * - RDMA_CM_EVENT_CONNECT_REQUEST with the new id in event->id, for rdma_accept or rdma_reject, and
 *   listen_id in event->listen_id, all as if the peer had come through a listener; or
 * - RDMA_CM_EVENT_CONNECT_ERROR of listen_id: there was no Request. event->status is -ECONNRESET (the
 *   peer left), -EPROTO (it does not speak MPA), -ETIMEDOUT (below), -ENOMEM or what TCP says. The
 *   socket is closed. Who must know which of several sockets it was has an id for each.
 *
 * rdma_destroy_id of listen_id ends what is under way and closes those sockets; the ids that the
 * program has taken live on.
 *
 * 0; or -1 with errno: EINVAL (listen_id is NULL, or no longer fresh; or the environment's ANYWARP_MPA
 * is wrong), EBADF, ENOTSOCK, EPROTONOSUPPORT (not TCP), ENOTCONN, EAGAIN, EMFILE, ENOMEM.
 */
int anywarp_cm_respond(struct rdma_cm_id *listen_id, int fd);

/* How long the calling thread sleeps in ibv_get_cq_event at the most, which is ETIMEDOUT then. Below 0, as at first: no limit. */
void anywarp_sleep_limit(int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
