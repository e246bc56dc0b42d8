// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Functions of librdmacm that are not written yet. Each answers "not supported" and gives way to the real function
// of the same name, whereupon it is deleted here. When the last one goes, so does this file.
#include <errno.h>
#include <stddef.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PENDING __attribute__((weak))

// Event channel
PENDING struct rdma_event_channel *rdma_create_event_channel(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
}

PENDING int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	errno = EOPNOTSUPP;
	return -1;
}

// Id
PENDING int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
			   void *context, enum rdma_port_space ps)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_destroy_id(struct rdma_cm_id *id)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			    size_t optlen)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return 0;
}

PENDING __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return 0;
}

PENDING int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			   struct ibv_qp_init_attr *qp_init_attr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void rdma_destroy_ep(struct rdma_cm_id *id)
{
}

// Address
PENDING int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
			      struct sockaddr *dst_addr, int timeout_ms)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_getaddrinfo(const char *node, const char *service,
			     const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
}

PENDING struct ibv_context **rdma_get_devices(int *num_devices)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void rdma_free_devices(struct ibv_context **list)
{
}

// Connection
PENDING int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_establish(struct rdma_cm_id *id)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			    uint8_t private_data_len)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_disconnect(struct rdma_cm_id *id)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	errno = EOPNOTSUPP;
	return -1;
}

// QP, SRQ
PENDING int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			   struct ibv_qp_init_attr *qp_init_attr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void rdma_destroy_qp(struct rdma_cm_id *id)
{
}

PENDING int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			    struct ibv_srq_init_attr *attr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void rdma_destroy_srq(struct rdma_cm_id *id)
{
}
