// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The beginning of a record.
#include "record/record.h"

#include <string.h>

void aw_record_init(struct aw_record *record)
{
	memset((void *)&record->rx, 0, offsetof(struct aw_record_rx, bytes));
	memset(&record->tx, 0, offsetof(struct aw_record_tx, bytes));
	record->rx.msn = 1;
	record->rx.wanted = 1;
}
