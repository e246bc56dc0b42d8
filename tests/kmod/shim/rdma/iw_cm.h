// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the connection manager and its driver say to each other.
#ifndef KSHIM_IW_CM_H
#define KSHIM_IW_CM_H

#include <net/sock.h>
#include <rdma/ib_verbs.h>

enum iw_cm_event_type {
	IW_CM_EVENT_CONNECT_REQUEST = 1,
	IW_CM_EVENT_CONNECT_REPLY,
	IW_CM_EVENT_ESTABLISHED,
	IW_CM_EVENT_DISCONNECT,
	IW_CM_EVENT_CLOSE,
};

struct iw_cm_event {
	enum iw_cm_event_type event;
	int status;
	struct sockaddr_storage local_addr, remote_addr;
	void *private_data;
	void *provider_data;
	u8 private_data_len;
	u8 ord, ird;
};

struct iw_cm_id {
	struct ib_device *device;
	struct sockaddr_storage m_local_addr, m_remote_addr;
	void *provider_data;
	int (*event_handler)(struct iw_cm_id *cm_id, struct iw_cm_event *event);
	void (*add_ref)(struct iw_cm_id *cm_id);
	void (*rem_ref)(struct iw_cm_id *cm_id);
	u8 tos;
	bool tos_set, afonly;
};

struct iw_cm_conn_param {
	const void *private_data;
	u16 private_data_len;
	u32 ord, ird, qpn;
};

#endif
