// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connection manager above the module: its states, its calls, and what it cannot bear of a driver. Each
// event is checked against the contract when it comes, and handed to the program when the manager's thread runs.
#ifndef KMOD_TEST_IWCM_H
#define KMOD_TEST_IWCM_H

#include <rdma/iw_cm.h>

enum cm_state {
	CM_IDLE,
	CM_LISTEN,
	CM_CONN_RECV,
	CM_CONN_SENT,
	CM_ESTABLISHED,
	CM_CLOSING,
	CM_DESTROYING,
};

#define CM_EVENTS_MAX 16

struct cm_id {
	struct iw_cm_id id;
	struct cm_id *next; /* of all */
	unsigned int refs;
	enum cm_state state;
	bool connect_waits; /* a call is under way, or its event */
	bool drops; /* destroyed: events are not told any more */
	struct ib_qp *qp; /* a reference */
	bool handled; /* its events are being told */
	unsigned int room; /* events that it can keep */
	unsigned int count;
	struct iw_cm_event events[CM_EVENTS_MAX];
	u8 private_data[CM_EVENTS_MAX][256];
	/* what the driver told, and may yet */
	bool initiator;
	unsigned int replies, established, disconnects, closes;
	bool sent; /* a connect succeeded */
	bool over; /* nothing may follow */
	/* the program's */
	unsigned int calls; /* under way */
	bool ends; /* it is destroyed, or about to be */
};

/* The program's answer to an event, in the manager's thread; not 0: the id is destroyed. */
extern int (*cm_handler)(struct cm_id *id, const struct iw_cm_event *event);

struct cm_id *cm_create(struct ib_device *device);
/* Waits for a call that is under way. The id must not be used behind it. */
void cm_destroy(struct cm_id *id);
int cm_listen(struct cm_id *id, unsigned int backlog);
int cm_connect(struct cm_id *id, struct iw_cm_conn_param *param);
int cm_accept(struct cm_id *id, struct iw_cm_conn_param *param);
int cm_reject(struct cm_id *id, const void *pd, u8 pd_len);
void cm_disconnect(struct cm_id *id, bool abrupt);

extern struct cm_id *cm_ids;
extern bool cm_starves; /* by chance an event finds no memory */

/* Nothing is left, and everything that had to be told was. */
void cm_end(void);

#endif
