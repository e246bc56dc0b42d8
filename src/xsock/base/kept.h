// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options that a program has set on its connection and the library has other values for on the TCP socket: the
// program reads back its own.
#ifndef XSOCK_BASE_KEPT_H
#define XSOCK_BASE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#define AW_KEPT_MAX 7

struct aw_kept {
	int values[AW_KEPT_MAX];
};

/* As they are on tcp before the endpoint has it. */
void aw_kept_read(struct aw_kept *kept, int tcp);
/* The value; NULL: this option is not kept, but TCP's own. */
const int *aw_kept_find(const struct aw_kept *kept, int level, int name);
bool aw_kept_is(int level, int name);
/* Of an option that is kept. 0 or an errno; then *set is what has been set. */
int aw_kept_set(struct aw_kept *kept, int level, int name, const void *value, size_t len, int *set);

#endif
