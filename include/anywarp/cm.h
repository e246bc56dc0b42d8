/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls that anywarp's librdmacm.so.1 has and rdma-core's has not (symbol versions ANYWARP_1.0 and 1.1): a
 * connection over a TCP socket that is connected already (RFC 5044 7.1.3, delayed start-up), a limit for
 * sleeps, and the peer whom TLS has proven (docs/tls.md). A program that also runs over rdma-core's library finds the functions by dlsym(3).
 */
#ifndef ANYWARP_CM_H
#define ANYWARP_CM_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Both functions take an established TCP socket (IPv4 or IPv6) over which both programs have read
 * all that the other one has written; one end initiates, the other one responds. The socket may
 * already hold bytes of the peer's start-up.
 *
 * On success fd belongs to the library: the program neither uses nor closes it any more. It becomes
 * non-blocking and close-on-exec. O_ASYNC, SO_LINGER, SO_RCVLOWAT, TCP_CORK and TCP_NOTSENT_LOWAT
 * are set to their defaults, and keep-alive and time-outs to those of every connection of the
 * library. All but close-on-exec belong to the open file, so they hold for duplicates of fd as well,
 * also in other processes. The library ends the stream by shutdown(2), which ends it for them, too.
 *
 * On failure fd still belongs to the caller, with its flags as they were, and the id is as before.
 *
 * The peer's program may come late, as on any TCP connection: each end waits for the Request, the
 * Reply, and the first message behind a Reply as long as TCP finds the peer there. Once the first byte
 * of a Request or Reply has arrived, the rest has ten seconds; and so has that first message if
 * rdma_accept itself waits for it (an id of rdma_create_id(NULL, ...)).
 */

/*
 * The active end. id is fresh from rdma_create_id; afterwards it is as after rdma_resolve_route, and
 * connects over fd. rdma_create_qp and rdma_connect follow as usual; rdma_connect sends the MPA
 * Request, and its events are the same. A peer that knows only MPA revision 1, and therefore closes,
 * is not asked again in revision 1, because that takes another connection.
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
 *   peer left), -EPROTO (it does not speak MPA), -ETIMEDOUT (see above), -ENOMEM or what TCP says. The
 *   socket is closed. A program that must know which of several sockets failed uses an id for each.
 *
 * rdma_destroy_id of listen_id ends what is under way and closes those sockets; the ids that the
 * program has taken live on.
 *
 * 0; or -1 with errno: EINVAL (listen_id is NULL, or no longer fresh; or the environment's ANYWARP_MPA
 * is wrong), EBADF, ENOTSOCK, EPROTONOSUPPORT (not TCP), ENOTCONN, EAGAIN, EMFILE, ENOMEM.
 */
int anywarp_cm_respond(struct rdma_cm_id *listen_id, int fd);

/*
 * Limits each sleep of the calling thread in ibv_get_cq_event, which then fails with ETIMEDOUT. A negative
 * timeout_ns, the initial value, sets no limit.
 */
void anywarp_sleep_limit(int64_t timeout_ns);

/*
 * The peer of id's connection, as its certificate has it: on the passive end from RDMA_CM_EVENT_CONNECT_REQUEST on, so
 * that a program may decide by it, on the active end from RDMA_CM_EVENT_ESTABLISHED or CONNECT_RESPONSE on, and until
 * rdma_destroy_id. The certificate has been verified: the name is one that --tls-name or a rule asks for.
 *
 * 1: TLS protects the connection; 0: it does not. -1 with errno: EINVAL (id is NULL, or a parent's before fork),
 * ENOTCONN (there is no connection yet).
 */
int anywarp_cm_is_secure(struct rdma_cm_id *id);

/*
 * Copies the peer's certificate (X.509, as DER). Returns its length; with len 0 nothing is copied, and der may be NULL.
 * -1 with errno: as above; ENODATA (no TLS), ERANGE (len is less than the length; nothing was copied).
 */
ssize_t anywarp_cm_peer_certificate(struct rdma_cm_id *id, void *der, size_t len);

/*
 * The same for the name, with its NUL: the DNS name of the certificate by which the peer was let in; where no name was
 * asked for, the certificate's subject as in "/CN=two", which proves nothing beyond the CA's word. At most 256 bytes.
 */
ssize_t anywarp_cm_peer_name(struct rdma_cm_id *id, char *name, size_t len);

#ifdef __cplusplus
}
#endif

#endif
