// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/spare.h"

#include <stdatomic.h>
#include <stdlib.h>

#define SPARES 16 /* that the process keeps */

/*
 * An exchange or a compare-and-swap moves a buffer, so a fork needs no lock; acquire and release are each other's
 * partners.
 */
static _Atomic(uint8_t *) spares[SPARES];

uint8_t *aw_tls_spare_take(void)
{
	for (int i = 0; i < SPARES; i++) {
		uint8_t *spare = atomic_load_explicit(&spares[i], memory_order_relaxed);

		if (spare)
			spare = atomic_exchange_explicit(&spares[i], NULL, memory_order_acquire);
		if (spare)
			return spare;
	}
	return malloc(AW_TLS_SPARE_BYTES);
}

void aw_tls_spare_give(uint8_t *spare)
{
	for (int i = 0; i < SPARES; i++) {
		uint8_t *none = NULL;

		if (atomic_load_explicit(&spares[i], memory_order_relaxed))
			continue;
		if (atomic_compare_exchange_strong_explicit(
			    &spares[i], &none, spare, memory_order_release, memory_order_relaxed))
			return;
	}
	free(spare);
}
