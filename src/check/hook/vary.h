// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// --vary and --like, as the settings of the process have them.
#ifndef CHECK_HOOK_VARY_H
#define CHECK_HOOK_VARY_H

#include "check/model/verbs.h"
#include "check/vary/like.h"
#include "check/vary/vary.h"

/* The adapter to be like, or NULL. A name that no adapter has is logged once, and then it is NULL. */
const struct aw_like *aw_hook_like(void);

/*
 * A device that the program is about to see: anywarp's shows the adapter's node type and transport from now on, for nothing in
 * anywarp reads them. rdma-core's librdmacm and providers choose their way by them, so devices of rdma-core stay as they are.
 */
void aw_like_show(struct ibv_device *device);

/* The transport that the device has, whatever it shows. */
enum ibv_transport_type aw_like_transport(const struct ibv_device *device);

/* err of a check of vary/like.h: true for 0; else errno is set. */
bool aw_like_allows(int err);

/* A poll for up to max: how many to ask the device for; see aw_vary_poll. Without --vary max. */
uint32_t aw_vary_cq_poll(struct aw_cq_shadow *cq, uint32_t max);
void aw_vary_cq_polled(struct aw_cq_shadow *cq, struct ibv_wc *wc, int count);
void aw_vary_cq_gave(struct aw_cq_shadow *cq);
void aw_vary_cq_armed(struct aw_cq_shadow *cq, bool solicited_only);
void aw_vary_cq_event(struct aw_cq_shadow *cq);

/* A CQ of the channel for which an event comes for nothing; the caller puts it. NULL: the device is to be asked. */
struct aw_cq_shadow *aw_vary_channel_event(const struct ibv_comp_channel *channel);

#endif
