// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_set_option.
#include "rdmacm/fail.h"
#include "rdmacm/socket.h"

#include <string.h>

#define ACK_TIMEOUT_MAX 31 /* five bits */

static int set_tos(struct aw_cm_id *cm, const void *val)
{
	memcpy(&cm->tos, val, sizeof(cm->tos));
	cm->tos_set = true;
	aw_cm_socket_set_tos(cm, cm->fd);
	return 0;
}

static int set_reuse_addr(struct aw_cm_id *cm, const void *val)
{
	int on;

	memcpy(&on, val, sizeof(on));
	enum aw_cm_state state = aw_cm_id_state(cm);

	if (state != AW_CM_IDLE && (!on || state == AW_CM_LISTENING))
		return EINVAL;
	cm->reuse_addr = on;
	if (cm->fd >= 0)
		aw_cm_socket_set_reuse(cm->fd, on);
	return 0;
}

/*
 * Linux's rdma_cm takes it on a bound id, too, and answers at rdma_listen where the other family has the port: so
 * the id listens with what was asked for last.
 */
static int set_af_only(struct aw_cm_id *cm, const void *val)
{
	enum aw_cm_state state = aw_cm_id_state(cm);
	int on;

	memcpy(&on, val, sizeof(on));
	if (state != AW_CM_IDLE && state != AW_CM_BOUND)
		return EINVAL;
	cm->af_only = on;
	cm->af_only_set = true;
	if (state == AW_CM_BOUND)
		(void)aw_cm_socket_match_families(cm);
	return 0;
}

/*
 * TCP measures a time-out of its own: the QP only shows this one, and rdma_init_qp_attr gives it to
 * a program that moves its QP itself.
 */
static int set_ack_timeout(struct aw_cm_id *cm, const void *val)
{
	uint8_t timeout;

	memcpy(&timeout, val, sizeof(timeout));
	if (cm->ud || timeout > ACK_TIMEOUT_MAX)
		return EINVAL;
	cm->ack_timeout = timeout;
	cm->ack_timeout_set = true;
	return 0;
}

static const struct {
	size_t len;
	int (*set)(struct aw_cm_id *cm, const void *val);
} options[] = {
	[RDMA_OPTION_ID_TOS] = { sizeof(uint8_t), set_tos },
	[RDMA_OPTION_ID_REUSEADDR] = { sizeof(int), set_reuse_addr },
	[RDMA_OPTION_ID_AFONLY] = { sizeof(int), set_af_only },
	[RDMA_OPTION_ID_ACK_TIMEOUT] = { sizeof(uint8_t), set_ack_timeout },
};

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	size_t count = sizeof(options) / sizeof(options[0]);

	if (!id || !optval)
		return aw_cm_fail(EINVAL);
	if (level != RDMA_OPTION_ID || optname < 0 || (size_t)optname >= count)
		return aw_cm_fail(ENOSYS);
	if (optlen != options[optname].len)
		return aw_cm_fail(EINVAL);
	return aw_cm_fail(options[optname].set(aw_cm_id_of(id), optval));
}
