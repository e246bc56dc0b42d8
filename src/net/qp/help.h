// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where a process has few CPUs, a thread that spins on one CQ takes a CPU from the progress thread, which
// receives for the QPs that nobody polls (perftest's server does so for the whole of a test). So the
// spinning thread, the helper, serves such QPs: they are lent to it (net/qp/lend.h) as guests. On more CPUs
// than AW_HELP_CPUS_MAX nobody helps: the progress thread has a CPU of its own, and a poller's own
// messages do not wait for those of others.
#ifndef NET_HELP_H
#define NET_HELP_H

#include "net/qp/uqp.h"

#define AW_HELP_CPUS_MAX 2
#define AW_HELP_GUESTS_MAX 4
/* A thread that polled a CQ in vain so often in a row spins. */
#define AW_HELP_VAIN_MIN 64

/* Called when a stream begins: counts the CPUs that the process may use. */
void aw_help_attach(void);

/* Earlier polls do not count for qp, whose lock the caller holds. */
void aw_help_forget(struct aw_uqp *qp);

/*
 * True when helpers have spun since the last call for qp and have room: qp is a guest then, and the caller lends it.
 * Called at an event of a QP that is not lent, with the QP lock held.
 */
bool aw_help_take(struct aw_uqp *qp);

/* For net/qp/lend.c, under the QP lock or in the child of a fork: qp is no guest any more. */
void aw_help_leave(struct aw_uqp *qp);

/* True of a guest that nothing was moved for in many turns: it only costs the helper time. */
bool aw_help_is_vain(const struct aw_uqp *qp);

/* For net/qp/lend.c: the turns of all helpers. */
struct aw_hands *aw_help_hands(void);

/* Called by a thread that spins, with no lock held: serves the guests. True when one has more to send than its socket takes. */
bool aw_help_give(void);

#endif
