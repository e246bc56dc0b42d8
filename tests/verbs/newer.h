// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Public verbs that are newer than Debian 12's headers, for the tests, under names of their own.
#ifndef TESTS_VERBS_NEWER_H
#define TESTS_VERBS_NEWER_H

#include "verbs/newer.h"

struct vb_comp_cntr;

void *buf_alloc(struct ibv_pd *pd, size_t size, struct ibv_buf **buf) __asm__("ibv_alloc_buf");
void buf_free(struct ibv_buf *buf) __asm__("ibv_free_buf");
int buf_export(struct ibv_buf *buf) __asm__("ibv_export_buf_dmabuf_fd");
struct ibv_mr *buf_reg(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
		       int access) __asm__("ibv_reg_buf_mr");
struct ibv_mr *mr_reg_ex(struct ibv_pd *pd,
			 const struct vb_mr_init_attr *attr) __asm__("ibv_reg_mr_ex");

int counter_caps(struct ibv_context *context, struct vb_comp_cntr_caps *caps,
		 size_t size) __asm__("_ibv_query_comp_cntr_caps");
struct vb_comp_cntr *counter_create(struct ibv_context *context,
				    const struct vb_comp_cntr_init_attr *attr) //
	__asm__("ibv_create_comp_cntr");
int counter_destroy(struct vb_comp_cntr *counter) __asm__("ibv_destroy_comp_cntr");
int counter_set(struct vb_comp_cntr *counter, uint64_t value) __asm__("ibv_set_comp_cntr");
int counter_set_err(struct vb_comp_cntr *counter, uint64_t value) __asm__("ibv_set_err_comp_cntr");
int counter_inc(struct vb_comp_cntr *counter, uint64_t amount) __asm__("ibv_inc_comp_cntr");
int counter_inc_err(struct vb_comp_cntr *counter, uint64_t amount) __asm__("ibv_inc_err_comp_cntr");
int counter_read(struct vb_comp_cntr *counter, uint64_t *value) __asm__("ibv_read_comp_cntr");
int counter_read_err(struct vb_comp_cntr *counter,
		     uint64_t *value) __asm__("ibv_read_err_comp_cntr");
int counter_attach(struct ibv_qp *qp, struct vb_comp_cntr *counter,
		   const struct vb_comp_cntr_attach_attr *attr) //
	__asm__("ibv_qp_attach_comp_cntr");

#endif
