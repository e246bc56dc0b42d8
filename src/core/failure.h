// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a stream's error is reported to the QP's owner: the asynchronous event of the verbs that stands for it.
#ifndef CORE_FAILURE_H
#define CORE_FAILURE_H

#include "core/qp.h"

enum aw_failure {
	AW_FAILURE_NONE, /* the stream runs, has ended cleanly, or is lost, which the connection's events tell */
	AW_FAILURE_FATAL, /* of this end, of the stream, or as the peer's Terminate says */
	AW_FAILURE_ACCESS, /* the peer asked for what it has no right to */
	AW_FAILURE_REQUEST, /* the peer asked for what cannot be carried out */
};

enum aw_failure aw_failure_of(const struct aw_qp *qp);

#endif
