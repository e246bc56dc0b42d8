// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of a TCP socket that the library keeps: it sets other values on the socket than the
// program has set, and the program reads back its own. Called by proxy/ and preload/.
#ifndef XSOCK_BASE_KEPT_H
#define XSOCK_BASE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#define AW_KEPT_MAX 7

struct aw_kept {
	int values[AW_KEPT_MAX];
};

/* Reads the values from tcp, before an endpoint takes it. */
void aw_kept_read(struct aw_kept *kept, int tcp);
/* Returns the value; NULL: the option is not kept. */
const int *aw_kept_find(const struct aw_kept *kept, int level, int name);
bool aw_kept_is(int level, int name);
/*
 * Sets a kept option from the len bytes at value. Returns 0 with *set, the value that has been set,
 * or EINVAL.
 */
int aw_kept_set(struct aw_kept *kept, int level, int name, const void *value, size_t len, int *set);

#endif
