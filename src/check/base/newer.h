// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Values that verbs.h has from rdma-core 47 on.
#ifndef CHECK_NEWER_H
#define CHECK_NEWER_H

#define AW_NEWER_WR_FLUSH 14
#define AW_NEWER_WC_FLUSH 8
#define AW_NEWER_QP_EX_WITH_FLUSH (1 << 11)
#define AW_NEWER_ACCESS_FLUSH (1 << 8 | 1 << 9) /* global, persistent */

#endif
