// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The library's part of a struct rdma_cm_id: its socket or connection, its state, its event counts.
// Callbacks of net/ find it by its handle and take its lock. The lock is never held around a call
// into net/ that can call back or wait for a callback; it comes before the lock of a channel.
//
// aw_cm_id_enter alone changes the state, under the id's lock, and asserts the arrow. Each state
// also goes to ENDED, by rdma_destroy_id.
//
// state           meaning                                     next
// IDLE            created                                     BOUND; ADDR_RESOLVED; ROUTE_RESOLVED
//                                                             by anywarp_cm_initiate; REQUESTED,
//                                                             as the id of a peer's Request
// BOUND           has a socket with an address                ADDR_RESOLVED, LISTENING
// ADDR_RESOLVED   device and route to the peer are known      ROUTE_RESOLVED
// ROUTE_RESOLVED  may connect                                 CONNECTING
// LISTENING       its listener takes Requests                 BOUND if it cannot listen
// CONNECTING      the Request (UD: the question) is on its    CONNECTED; FAILED; ROUTE_RESOLVED if
//                 way                                         the call fails at once
// REQUESTED       a peer's Request waits for the program      ACCEPTING; CONNECTED (UD); FAILED by
//                                                             rdma_reject
// ACCEPTING       a thread in rdma_accept sends the Reply     REPLIED; FAILED
// REPLIED         the QP has the socket; the peer's first     CONNECTED; DISCONNECTED; FAILED if
//                 FPDU is due (p2p)                           the peer leaves or is silent
// CONNECTED       ESTABLISHED, or the active end's response,  DISCONNECTED
//                 was raised
// DISCONNECTED    DISCONNECTED was raised; TIMEWAIT_EXIT may
//                 be due
// FAILED          start-up has failed or was rejected
// ENDED           being destroyed: callbacks leave it alone
#ifndef RDMACM_ID_H
#define RDMACM_ID_H

#include "base/thread_safety.h"
#include "net/conn/conn.h"
#include "net/conn/listener.h"
#include "net/progress/watch.h"
#include "rdmacm/event_channel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

enum aw_cm_state {
	AW_CM_IDLE,
	AW_CM_BOUND, /* has a socket with an address */
	AW_CM_ADDR_RESOLVED,
	AW_CM_ROUTE_RESOLVED,
	AW_CM_LISTENING,
	AW_CM_CONNECTING, /* our Request is on its way */
	AW_CM_REQUESTED, /* a peer's Request waits for accept or reject */
	AW_CM_ACCEPTING,
	AW_CM_REPLIED, /* accepted; the peer's first FPDU is due */
	AW_CM_CONNECTED,
	AW_CM_DISCONNECTED,
	AW_CM_FAILED, /* start-up failed or was rejected */
	AW_CM_ENDED, /* being destroyed: callbacks leave it alone */
};

struct aw_cm_ud;

struct aw_cm_id {
	struct rdma_cm_id id; /* the program's view; must be first */
	uint32_t handle; /* fixed after create */
	uint32_t process; /* fixed after create: the process that it belongs to */

	aw_mutex lock; /* guards what follows */
	pthread_cond_t changed; /* an event is acknowledged; the last of qp_users is gone */
	enum aw_cm_state state;
	bool sync; /* the channel is our own and calls wait for their event */
	bool engine_held;
	bool fd_connected; /* the program has connected it */
	bool fd_has_src; /* it is bound to the id's source address and port */
	bool reuse_addr, tos_set, ack_timeout_set;
	bool af_only, af_only_set; /* not set: as the host has it (net.ipv6.bindv6only) */
	uint8_t tos, ack_timeout;
	int fd; /* the TCP socket until a connection or listener takes it, or -1 */
	struct aw_conn *conn; /* CONNECTING and REQUESTED, while the id owns it */
	bool conn_done; /* CONNECTING: the first conn has had its one event */
	struct aw_listener *listener;
	struct aw_listener *given; /* for sockets that the program has connected */
	uint32_t backlog; /* LISTENING: the most Requests that the program has not taken */
	uint32_t requests; /* Requests that the program has not taken */
	struct aw_cm_ud *ud; /* of RDMA_PS_UDP; fixed after create */
	uint32_t qp_users; /* calls that use id.qp: qp_ref.h */
	uint32_t qpn;
	struct aw_uqp *uqp; /* tells the QP from a later one of the same number; may be stale */
	uint32_t uqp_events;
	bool attached; /* the QP has got the socket */
	bool disconnecting;
	uint8_t ird, ord; /* the agreed depths */
	struct aw_tls_identity
		*identity; /* the peer, held, from the Request or Reply on; NULL: no TLS */
	struct aw_cm_timer *timer; /* REPLIED: for a silent peer; DISCONNECTED: timewait */
	struct aw_cm_event *_Atomic spare; /* for when memory is out; NULL: in use */
	uint32_t events_acked;
	_Atomic uint32_t events_taken; /* written under the channel's lock */
	/* rdma_resolve_addrinfo: under way or not taken; and what it found, or NULL */
	bool resolving;
	struct rdma_addrinfo *resolved;
	struct ibv_qp_init_attr *ep_attr;
	/* the connection data of rdma_create_ep, which rdma_connect sends before the private data; or NULL */
	uint8_t *ep_data;
	uint8_t ep_data_len;
};

static inline struct aw_cm_id *aw_cm_id_of(struct rdma_cm_id *id)
{
	return (struct aw_cm_id *)id;
}

/* rdma_create_id of an id with that type of QP. 0, or -1 with errno. */
int aw_cm_id_make(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		  enum rdma_port_space ps, enum ibv_qp_type qp_type);

/* Creates an id on channel. 0 or ENOMEM. */
int aw_cm_id_create(struct rdma_event_channel *channel, void *context, struct aw_cm_id **cm);

/* Ends what the id has under way, drops its unread events, waits for acknowledgements, frees it. */
void aw_cm_id_destroy(struct aw_cm_id *cm);

/*
 * True when it was made before a fork that this process came from. Its lock must not be taken then.
 */
bool aw_cm_id_inherited(const struct aw_cm_id *cm);

/*
 * arg: the argument of callbacks. get: the id that it stands for, held; NULL when the id is gone.
 */
void *aw_cm_id_arg(const struct aw_cm_id *cm);
struct aw_cm_id *aw_cm_id_get(void *arg);
void aw_cm_id_put(struct aw_cm_id *cm);

/* From now on no callback finds the id, and none of this process holds it. */
void aw_cm_id_withdraw(struct aw_cm_id *cm);

/* Changes the state. */
void aw_cm_id_enter(struct aw_cm_id *cm, enum aw_cm_state state) AW_REQUIRES(cm->lock);

enum aw_cm_state aw_cm_id_state(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* Enters to if the state is from; otherwise false. */
bool aw_cm_id_advance(struct aw_cm_id *cm, enum aw_cm_state from, enum aw_cm_state to)
	AW_EXCLUDES(cm->lock);

/* Takes the id's own reference to the progress engine, once. 0 or an errno. */
int aw_cm_id_hold_engine(struct aw_cm_id *cm);

/*
 * For a synchronous id: waits for the next event, keeps it in id->event, and turns its status
 * into errno. 0 or -1. For others: 0 at once.
 */
int aw_cm_id_complete(struct aw_cm_id *cm);

/* Acknowledges the event that a synchronous id keeps. */
void aw_cm_id_release_event(struct aw_cm_id *cm);

#endif
