// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// --like NAME: the limits and the semantics of an adapter, as far as they are public. A table and checks against it. A limit that is
// not public, or is told by the adapter's firmware alone, is not limited: the table says less than the adapter
// might, never more.
#ifndef CHECK_VARY_LIKE_H
#define CHECK_VARY_LIKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define AW_LIKE_NONE \
	(-1) /* of a limit: the adapter has no such thing. 0: its number is not public */

/* Of a successful completion of a Send or Write. */
enum aw_like_completion {
	AW_LIKE_ACKED, /* the peer's adapter has acknowledged it (InfiniBand 9.7.5) */
	AW_LIKE_TAKEN, /* the local buffer may be used again, and nothing more (RFC 5040 5.5) */
};

struct aw_like {
	const char *name; /* "mlx5": as --like has it */
	const char *adapter; /* for people */
	enum ibv_transport_type transport;
	enum ibv_node_type node;
	uint32_t vendor_id, vendor_part_id;

	/* As in struct ibv_device_attr. */
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	int max_qp, max_qp_wr, max_sge, max_sge_rd;
	int max_cq, max_cqe, max_mr, max_pd, max_mw, max_ah;
	int max_qp_rd_atom, max_qp_init_rd_atom, max_res_rd_atom;
	int max_srq, max_srq_wr, max_srq_sge;
	bool atomics; /* false: ATOMIC_NONE */

	int max_inline; /* bytes of cap.max_inline_data at most */
	uint32_t qp_types; /* a bit each: 1 << IBV_QPT_RC */
	uint32_t opcodes; /* of an RC QP, or of what takes its place: 1 << IBV_WR_SEND */
	uint32_t no_access; /* enum ibv_access_flags that it refuses */

	enum aw_like_completion completion;
	bool initiator_first; /* the passive end sends nothing before it has received (RFC 5044 7.1.2) */
	bool unordered; /* messages of a QP may arrive in any order */
};

/* NULL: no adapter has the name. */
const struct aw_like *aw_like_find(const char *name);

/* The names, with ", " between, for errors and help. */
const char *aw_like_names(void);

/* Lowers what the real device has to what the adapter has, and takes the adapter's vendor_id and vendor_part_id. */
void aw_like_limit_device(const struct aw_like *like, struct ibv_device_attr *attr);

/*
 * Each: 0, or the errno number with which the adapter's driver refuses the call. The real device is asked as well.
 * EINVAL: beyond a limit. EOPNOTSUPP: the adapter has no such thing.
 */
int aw_like_check_create_qp(const struct aw_like *like, const struct ibv_qp_init_attr *attr);
int aw_like_check_modify_qp(const struct aw_like *like, const struct ibv_qp_attr *attr, int mask);
int aw_like_check_create_cq(const struct aw_like *like, int cqe);
int aw_like_check_create_srq(const struct aw_like *like, const struct ibv_srq_init_attr *attr);
int aw_like_check_reg_mr(const struct aw_like *like, uint64_t length, unsigned int access);
int aw_like_check_alloc_mw(const struct aw_like *like);

/* One WR of a post to a QP of that type, not those behind it. EINVAL: the adapter's driver knows no other refusal. */
int aw_like_check_post_send(const struct aw_like *like, enum ibv_qp_type type,
			    const struct ibv_send_wr *wr);

#endif
