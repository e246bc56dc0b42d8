// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The library around fork(2). An object with locks, threads or fds registers its handlers here once; one
// pthread_atfork(3) serves all of them.
//
// Before a fork the watches' handlers are kept from running, then the locks are taken in the order
// below, librdmacm's among them; the parent gives them back in reverse. In the child
// aw_fork_generation grows, so that the parent's objects are known as such; the engine closes its
// copies of the fds and has no thread; the locks of the parent's QPs and CQs are made anew, since
// a thread of the parent may hold them; the QPs' sockets are left to the parent, so that its
// connections end with it; channels start empty, with fds of their own under the same numbers. A
// fork in a signal handler that has interrupted its thread under one of these locks takes none of
// them, and its child cannot use verbs (aw_fork_check). The sockets library has handlers of its
// own (xsock/process/fdtab_fork.c); the order of loading decides which come first.
#ifndef NET_FORK_H
#define NET_FORK_H

#include "base/thread_safety.h"

#include <stdint.h>

/*
 * The order in which a fork takes the locks of the library, outermost first: a thread that holds one of them takes only
 * those that stand behind it.
 */
enum aw_fork_rank {
	AW_FORK_HANDLING, /* the watches' handlers do not run: net/progress/engine.c */
	AW_FORK_CM_IDS,
	AW_FORK_CM_DEVICES,
	AW_FORK_CM_CHANNELS,
	AW_FORK_CM_ROUTES,
	AW_FORK_LISTENERS,
	AW_FORK_QPS,
	AW_FORK_REPLIED, /* net/qp/replied.c */
	AW_FORK_UD,
	AW_FORK_QPNS,
	AW_FORK_XRC_DOMAINS, /* verbs/xrcd.c */
	AW_FORK_XRC, /* net/cq/xrc.c */
	AW_FORK_WINDOWS,
	AW_FORK_REGIONS,
	AW_FORK_TURNS, /* net/conn/order.c */
	AW_FORK_TLS, /* net/tls/context.c */
	AW_FORK_TLS_RULES, /* net/tls/want.c */
	AW_FORK_TLS_TICKETS, /* net/tls/resume.c */
	AW_FORK_PORT, /* verbs/port_watch.c */
	AW_FORK_ENGINE,
	AW_FORK_SHARED_OBJECTS,
	AW_FORK_GIDS,
	AW_FORK_CONTEXTS,
	AW_FORK_STAT,
	AW_FORK_WRITEBACK,
	AW_FORK_EVENT_FDS,
	AW_FORK_RANDOM, /* net/base/random.c */
	AW_FORK_RANKS
};

/*
 * A fork calls prepare by rising rank before it, parent or child by falling rank behind it. It takes lock behind prepare and
 * releases it, in both processes, behind parent or child. NULL: nothing to do.
 */
struct aw_fork_handlers {
	aw_mutex *lock;
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
	/* In place of the others, in the child of a fork that has called no handlers: takes no lock. */
	void (*torn)(void);
};

/* A fork that is under way in another thread does not call the handlers any more. handlers stays the caller's. */
void aw_fork_register(enum aw_fork_rank rank, const struct aw_fork_handlers *handlers);

/* Of fork_bare.c alone, in the child of a fork: makes anew the locks that a thread of the parent's may have held. */
void aw_fork_renew(void);

extern uint32_t aw_fork_generation_now; /* for aw_fork_generation alone */

/*
 * The number of forks between the process that loaded the library and this one. An object that was made under another number
 * is the parent's: its threads are gone, its locks may stay taken for ever, its fds are shared.
 */
static inline uint32_t aw_fork_generation(void)
{
	return aw_fork_generation_now;
}

/*
 * A fork in a signal handler that has interrupted its thread in the library, where that holds a lock, calls no handlers: it would wait
 * for ever. Its child may call execve(2) and _exit(2), as after any fork in a handler, and the objects that it inherits are dead.
 * Calls that would make one there fail with this function's EDEADLK; it logs the reason once. Anywhere else it returns 0.
 */
int aw_fork_check(void);

#endif
