// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asynchronous events that the plan of faults has occur. The program waits for them as for the device's own: in
// ibv_get_async_event, or by poll(2) on context->async_fd.
#ifndef CHECK_HOOK_ASYNC_H
#define CHECK_HOOK_ASYNC_H

#include <infiniband/verbs.h>

/* Where the plan has such events, async_fd becomes an epoll fd, of the device's own fd and of a timer. */
void aw_async_begin(struct ibv_context *context);

/* The device is about to be closed: gives its own fd back. */
void aw_async_end(struct ibv_context *context);

/* The event IBV_EVENT_CQ_ERR of the CQ is there. */
void aw_async_cq_error(struct ibv_cq *cq);

#endif
