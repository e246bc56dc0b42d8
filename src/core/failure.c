// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "core/failure.h"

#include "wire/error.h"

/*
 * Failed requests of the peer have events of their own: layers 0 and 1 have type 1 for protection errors and type 2 for other
 * bad messages (RFC 5040 4.8).
 */
enum aw_failure aw_failure_of(const struct aw_qp *qp)
{
	if (qp->state != AW_QP_TERMINATE && qp->state != AW_QP_ERROR)
		return AW_FAILURE_NONE;
	if (qp->peer_error)
		return AW_FAILURE_FATAL;
	if (qp->error == AW_OK || qp->error == AW_E_MPA_CLOSED)
		return AW_FAILURE_NONE;
	if (aw_error_layer(qp->error) > 1 || aw_error_type(qp->error) == 0)
		return AW_FAILURE_FATAL;
	if (aw_error_type(qp->error) == 1 && qp->error != AW_E_DDP_TAGGED_VERSION)
		return AW_FAILURE_ACCESS;
	return AW_FAILURE_REQUEST;
}
