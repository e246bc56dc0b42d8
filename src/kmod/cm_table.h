// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Used as the module ends.
#ifndef KMOD_CM_TABLE_H
#define KMOD_CM_TABLE_H

/* Ends every start-up, and waits for all connections. No new one begins, and no QP is left. */
void awk_conns_flush(void);

#endif
