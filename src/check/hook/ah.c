// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address handles, and the multicast groups of a QP.
#include "check/explain/explain.h"
#include "check/hook/hook.h"

#include <errno.h>

static void create_failed(struct ibv_context *context, const struct ibv_ah_attr *attr)
{
	struct aw_context_shadow *device = aw_context_get(context);
	const int err = errno;
	struct ibv_port_attr port;
	char why[AW_EXPLAIN_MAX];
	bool port_known =
		attr->port_num && device && device->extended.query_port &&
		device->extended.query_port(context, attr->port_num, &port, sizeof(port)) == 0;

	aw_explain_create_ah(attr, port_known ? &port : NULL,
			     device ? device->attr.phys_port_cnt : 0, err, why);
	aw_hook_explain("ibv_create_ah", why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_create_ah"))
		ah = aw_real()->ibv_create_ah(pd, attr);
	if (ah)
		aw_plain_add(AW_KIND_AH, ah, pd->context);
	else
		create_failed(pd->context, attr);
	aw_inside_leave();
	return ah;
}

/* The library may have called ibv_create_ah for it, which has put it down as the library's own. */
static void made_from_wc(const struct ibv_ah *ah, const struct ibv_pd *pd)
{
	struct aw_object *object = aw_object_get(ah, AW_KIND_AH);

	if (object && !atomic_load(&object->is_gone))
		object->is_inner = false;
	else
		aw_plain_add(AW_KIND_AH, ah, pd->context);
	aw_object_put(object);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah *ah = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_create_ah_from_wc"))
		ah = aw_real()->ibv_create_ah_from_wc(pd, wc, grh, port_num);
	if (ah)
		made_from_wc(ah, pd);
	else
		aw_hook_failed("ibv_create_ah_from_wc", errno);
	aw_inside_leave();
	return ah;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("ibv_init_ah_from_wc"))
		rc = aw_real()->ibv_init_ah_from_wc(context, port_num, wc, grh, ah_attr);
	return aw_hook_end_minus("ibv_init_ah_from_wc", rc);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(ah, AW_KIND_AH);
	if (aw_destroy_begin("ibv_destroy_ah", object)) {
		err = aw_real()->ibv_destroy_ah(ah);
		aw_destroy_end("ibv_destroy_ah", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	aw_inside_enter();
	return aw_hook_end("ibv_attach_mcast", aw_hook_may("ibv_attach_mcast")
						       ? aw_real()->ibv_attach_mcast(qp, gid, lid)
						       : errno);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	aw_inside_enter();
	return aw_hook_end("ibv_detach_mcast", aw_hook_may("ibv_detach_mcast")
						       ? aw_real()->ibv_detach_mcast(qp, gid, lid)
						       : errno);
}
