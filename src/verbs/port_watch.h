// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of the port: IBV_EVENT_PORT_ERR and PORT_ACTIVE when its state changes, in the roce persona GID_CHANGE when an address
// comes or goes. A netlink socket tells the progress thread that something has changed; the thread then
// reads the interfaces again (verbs/gid.h), so that a socket that overflows loses nothing.
//
// The thread listens only in a process that may take events: from the first ibv_get_async_event on, which waits for one as a
// rule, or, for programs that wait by poll(2), once async_fd has O_NONBLOCK. It listens until the last device is closed. The
// first look compares with what the program was told last.
#ifndef VERBS_PORT_WATCH_H
#define VERBS_PORT_WATCH_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* A context was opened, or one with this generation (net/base/fork.h) is closed, which still holds the engine. */
void vb_port_watch_opened(void);
void vb_port_watch_closed(uint32_t generation);

/* The program takes events. The caller has an open context. Where a socket or memory lacks there are no events, and the log says so. */
void vb_port_watch_begin(void);

/* The same where the program's async_fd has O_NONBLOCK. For calls that programs make seldom. */
void vb_port_watch_look(const struct ibv_context *context);

#endif
