// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An open device. Objects made in it hold it, so that closing it before them is safe.
// In this directory vb_ names what is linked and stays inside the library; avb_ is exported.
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H

#include "net/base/fork.h"
#include "net/cq/channel.h"
#include "net/stat/stat.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct vb_context {
	struct verbs_context verbs; /* a program's pointer is to the ibv_context at its end */
	struct aw_channel async;
	uint32_t generation; /* aw_fork_generation() when it was opened */
	union aw_stat_row *stat; /* its statistics, or NULL */
	/* the file of cmd_fd, which imports share */
	dev_t cmd_dev;
	ino_t cmd_ino;

	/* events of the port; each is guarded by async's lock */
	struct aw_source port_err, port_active, gid_change;

	/* guarded by context.c */
	uint32_t refs;
	TAILQ_ENTRY(vb_context) entry;
};

static inline struct vb_context *vb_context_of(struct ibv_context *context)
{
	size_t offset =
		offsetof(struct vb_context, verbs) + offsetof(struct verbs_context, context);

	return (struct vb_context *)((char *)context - offset);
}

/* True in the child of a fork, for a context that the parent had opened. */
static inline bool vb_context_is_inherited(struct ibv_context *context)
{
	return vb_context_of(context)->generation != aw_fork_generation();
}

void vb_context_get(struct ibv_context *context);
/* The last reference closes the device. */
void vb_context_put(struct ibv_context *context);

/*
 * Opens another context of the device whose open context has this fd, or a copy of it, as its
 * cmd_fd; the new context owns the fd on success. 0, EBADF, ENOMEM, EMFILE; EOPNOTSUPP when no
 * context of this process has it (its parent's contexts do not count).
 */
int vb_context_import(int cmd_fd, struct vb_context **context);
/* True when a and b are the same context, or share a cmd_fd by import. */
bool vb_context_is_same(struct ibv_context *a, struct ibv_context *b);

/* Raises an event of the port, PORT_ERR, PORT_ACTIVE or GID_CHANGE, in each context of this process. */
void vb_context_raise_port(enum ibv_event_type event);

/* For statistics: so many PDs or MRs, and bytes in MRs, more; fewer where negative. */
void vb_context_count(struct ibv_context *context, int pds, int mrs, int64_t mr_bytes);

/* The functions behind the inline functions of verbs.h: in qp_post.c, srq.c, cq.c and so on. */
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* In its place on a device that varies. */
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vb_dealloc_mw(struct ibv_mw *mw);
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t attr_size);
/* The port's active MTU in bytes, 0 when it is not known. */
uint32_t vb_port_mtu(void);
/* The active MTU of this interface; 0 when it is not known. */
enum ibv_mtu vb_port_mtu_of(uint32_t ifindex);
int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			    unsigned int access);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);

#endif
