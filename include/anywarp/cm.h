/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What anywarp's librdmacm.so.1 has beyond rdma-core's (symbol version ANYWARP_1.0): a connection
 * over a TCP socket that is connected already, as RFC 5044 7.1.3 has it ("delayed start-up"), and
 * connections that go on in the child of a fork. A program that also runs over rdma-core's library
 * finds the functions by dlsym(3).
 */
#ifndef ANYWARP_CM_H
#define ANYWARP_CM_H

#include <rdma/rdma_cma.h>
#include <signal.h>

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

/*
 * In the child of an ordinary fork the library starts afresh: connections stay the parent's. They
 * move to the child like this:
 *
 *	parent                                  child
 *	anywarp_fork_hold();
 *	fork();
 *	anywarp_cm_forget(id);                  anywarp_fork_take(&id, 1);
 *	anywarp_fork_release();
 *
 * The child goes on where the parent stopped, in the midst of a message or of an FPDU, and the peer
 * notices nothing, also if the parent is killed meanwhile. One of the two may go on with a
 * connection: the parent forgets, before it releases, every one that the child takes.
 *
 * From hold up to take or release all calls are this one thread's: no other thread is in a call of the
 * library, nor sleeps in one, and in between come but the calls above, fork(3) (which runs the handlers of
 * pthread_atfork; vfork and _Fork do not), and calls that destroy what a forgotten id has left. No
 * event is unacknowledged.
 */

/*
 * Sends what posts are held back, and stops the library's own thread between two of its jobs, until
 * anywarp_fork_release. Children that this thread forks meanwhile are for anywarp_fork_take; what other
 * threads fork waits.
 *
 * 0; or -1 with errno ENOMEM, or EINVAL: it is held already.
 */
int anywarp_fork_hold(void);

/*
 * In the parent: goes on with what was not forgotten. 0; or -1 with errno EINVAL: nothing is held, or
 * this is the child.
 */
int anywarp_fork_release(void);

/*
 * In the child: goes on with the count ids, and with the QPs, CQs, SRQs, MRs, PDs, channels and
 * contexts, at the same addresses, with the same keys and fds. Completion, async and event channels
 * keep their fds' numbers and O_NONBLOCK, but are files of their own from the fork on; an epoll set
 * is shared with the parent by fork(2), so that the child puts them into a new one. Posts, unpolled
 * completions, events that wait and deadlines are as in the parent at the fork. A Request that waits
 * in the channel of a listening id goes with it; a listening id that the parent does not forget
 * listens in both.
 *
 * Every other id is lost here as after an ordinary fork, and its sockets are closed in this process, with
 * no octet to the peer, who has the parent still: it, and its QP, can only be destroyed.
 *
 * The child can hold in its turn, for a child of its own.
 *
 * 0; or -1 with errno EINVAL: this is not a child for it, or an id is NULL; nothing was done. Or EAGAIN,
 * EMFILE, ENFILE, ENOMEM, ENOSPC: then the call can be made again, with the same ids.
 */
int anywarp_fork_take(struct rdma_cm_id *const *ids, int count);

/*
 * Between hold and release, or in the child before take: destroys id and its QP (and the CQs that
 * rdma_create_qp made) with no octet to the peer and no shutdown(2), so that the connection lives on in
 * the other process. Requests that wait in id's channel are forgotten likewise. MRs, and CQs and
 * channels of the program's own, stay; they are destroyed as ever, now or later.
 *
 * 0; or -1 with errno EINVAL: id is NULL, or nothing is held.
 */
int anywarp_cm_forget(struct rdma_cm_id *id);

/*
 * A process that is killed says no more. Another one may end its connection in its place: it has a duplicate of
 * the TCP socket, and shares the memory of a note that the library keeps of what there is left to do.
 */
struct anywarp_cm_note {
	uint32_t words[4]; /* the library's; zero at first */
};

/*
 * Keeps note of id's connection from here on, until the id's QP is destroyed or another note, or NULL for none, takes
 * its place. Who carries a connection over to a child ends the note before anywarp_fork_hold.
 *
 * 0; or -1 with errno EINVAL: id is NULL, or has no QP that is, or is about to be, connected.
 */
int anywarp_cm_keep_note(struct rdma_cm_id *id, struct anywarp_cm_note *note);

/*
 * In the other process, once the first is dead: the octets that bring the peer one more Send, of len octets, on the
 * connection's TCP socket. How many they are; or 0: not all that was posted is with TCP, the stream is over or
 * has markers, or they are more than room. A program that posted no more than it told of ends in order with it;
 * where the answer is 0 octets are lost, and shutdown(2) lets the peer find that out.
 */
size_t anywarp_cm_last_send(const struct anywarp_cm_note *note, const void *octets, size_t len,
			    void *fpdu, size_t room);

/*
 * The calling thread's mask of signals while it sleeps in ibv_get_cq_event, and nowhere else in the library, as ppoll(2)
 * has one; mask is borrowed. NULL, as at first: the mask is as it is. A thread that has signals blocked
 * but for these sleeps may leave one by siglongjmp out of a handler: no lock is held there.
 */
void anywarp_sleep_mask(const sigset_t *mask);

/* How long the calling thread sleeps in ibv_get_cq_event at the most, which is ETIMEDOUT then. Below 0, as at first: no limit. */
void anywarp_sleep_limit(int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
