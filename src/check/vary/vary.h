// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// --vary SEED, above any device: completions that come late, singly or in batches, events that come for nothing, and
// threads that are held up at their calls. All of it is what an adapter may do; docs/vary.md says by which law.
//
// No completion is kept here. A poll that is answered with nothing does not reach the device, and one that shall give less
// asks the device for less, so that a QP's destroy, a CQ's resize and the events of the channel are the device's own
// matter. A completion is never withheld from a program that may sleep for it:
//
// state      begins with                       a poll may be
// FREE       the CQ's creation                 answered with nothing, up to AW_VARY_EMPTY_MAX times in a row; cut short
// ARMED      ibv_req_notify_cq                 nothing but the device's own answer
// TOLD       ibv_get_cq_event gives the CQ     cut short, but not answered with nothing: the completion that the event
//                                              is for is there. FREE behind it
//
// So a program that arms, polls until the CQ is empty and sleeps loses nothing, whether it sleeps in ibv_get_cq_event or
// by poll(2) on the channel's fd. One that polls, arms and sleeps without the second poll may sleep for ever, as on an
// adapter.
#ifndef CHECK_VARY_VARY_H
#define CHECK_VARY_VARY_H

#include "base/rng.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define AW_VARY_EMPTY_MAX 4 /* polls in a row that are answered with nothing */
#define AW_VARY_SINGLES_MAX 16 /* polls in a row that give one completion each */

enum aw_vary_state {
	AW_VARY_FREE,
	AW_VARY_ARMED,
	AW_VARY_TOLD,
};

/* Of a CQ; the caller sees to it that one thread at a time is in a function on it. */
struct aw_vary_cq {
	struct aw_rng rng;
	enum aw_vary_state state;
	bool solicited; /* ARMED for solicited completions alone */
	bool polled; /* a poll has given a completion since the CQ was armed */
	uint32_t empties; /* polls of this stretch still to be answered with nothing */
	uint32_t singles; /* polls behind them that give one completion */
};

/* number: how many CQs the process had made before this one. */
void aw_vary_cq_init(struct aw_vary_cq *cq, uint64_t seed, uint64_t number);

/*
 * A poll for up to max completions, max > 0: how many to ask the device for; 0: the answer is that there are none. A
 * program that polls by ibv_start_poll gets ENOENT instead, and at ibv_next_poll behind so many completions.
 */
uint32_t aw_vary_poll(struct aw_vary_cq *cq, uint32_t max);

/*
 * The device gave count completions. Changes their order where the law has none: those of a QP's send queue stay in order,
 * and those of its receives. With a failed completion among those of a QP all of that QP's do, for its opcode is undefined.
 */
void aw_vary_polled(struct aw_vary_cq *cq, struct ibv_wc *wc, uint32_t count);

/* The same without a change of order, for a poll by ibv_start_poll. */
void aw_vary_gave(struct aw_vary_cq *cq);

/* ibv_req_notify_cq has succeeded. */
void aw_vary_armed(struct aw_vary_cq *cq, bool solicited_only);

/* ibv_get_cq_event gives the CQ, for whichever reason. */
void aw_vary_event(struct aw_vary_cq *cq);

/*
 * Asked before a thread sleeps in ibv_get_cq_event: true when an event that no new completion is behind is to be given at
 * once. That is lawful only where the CQ is armed for any completion and the program has polled one since: adapters that
 * compare their producer index with the consumer index of the arm raise an event for it. The device, which does not know,
 * stays armed: a program that does not arm again behind it may get the device's event as well.
 */
bool aw_vary_event_spurious(struct aw_vary_cq *cq);

/* Where a thread may be held up. */
enum aw_vary_place {
	AW_VARY_POST,
	AW_VARY_POLL,
	AW_VARY_ARM,
	AW_VARY_EVENT, /* before and behind the wait for one */
	AW_VARY_OBJECT, /* an object is made, changed or destroyed */
	AW_VARY_CM, /* a call of rdma_cm */
	AW_VARY_PLACES,
};

#define AW_VARY_YIELD 1 /* ns: gives the CPU away once */

/* The time for which a thread is held up at that place, 0, AW_VARY_YIELD or at most some 100 us. Pure. */
uint64_t aw_vary_pause_ns(struct aw_rng *rng, enum aw_vary_place place);

/*
 * From now on aw_vary_pause holds threads up. The n-th thread that comes to it has the n-th stream of the seed. Called
 * once, before the program has threads.
 */
void aw_vary_begin(uint64_t seed);
bool aw_vary_is_on(void);

/* Holds the calling thread up, maybe. It is no cancellation point and keeps errno. Without aw_vary_begin it does nothing. */
void aw_vary_pause(enum aw_vary_place place);

#endif
