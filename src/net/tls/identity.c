// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/identity.h"

#include <stdlib.h>

struct aw_tls_identity *aw_tls_identity_get(struct aw_tls_identity *identity)
{
	if (identity)
		atomic_fetch_add_explicit(&identity->refs, 1, memory_order_relaxed);
	return identity;
}

void aw_tls_identity_put(struct aw_tls_identity *identity)
{
	if (identity && atomic_fetch_sub_explicit(&identity->refs, 1, memory_order_acq_rel) == 1)
		free(identity);
}
