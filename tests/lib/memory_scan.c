// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "memory_scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHADOW_MIN ((size_t)1 << 30) /* a sanitizer's own memory is that large */

struct scan_needle scan_needle_of(const uint8_t *secret)
{
	struct scan_needle needle;

	for (size_t i = 0; i < SCAN_BYTES; i++)
		needle.not_bytes[i] = (uint8_t)~secret[i];
	return needle;
}

/* Also where the sanitizers hold that nobody may look. */
static __attribute__((no_sanitize("address", "thread", "undefined"))) size_t count_between(
	const struct scan_needle *needle, uintptr_t from, uintptr_t end)
{
	size_t count = 0;

	for (; from + SCAN_BYTES <= end; from++) {
		const volatile uint8_t *at = (const volatile uint8_t *)from;
		size_t same = 0;

		while (same < SCAN_BYTES && at[same] + needle->not_bytes[same] == UINT8_MAX)
			same++;
		count += same == SCAN_BYTES;
	}
	return count;
}

/* Of a file that is shared, a part may be gone. Memory that processes share has no name but zero's. */
static bool is_to_scan(const char *rights, const char *name)
{
	bool is_shared = rights[3] == 's';

	return strncmp(rights, "rw", 2) == 0 && !strstr(name, "[stack") &&
	       (!is_shared || strstr(name, "/dev/zero"));
}

size_t scan_count(const struct scan_needle *needle)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], rights[5], name[400];
	unsigned long from, end;
	size_t count = 0;

	if (!maps)
		abort();
	while (fgets(line, sizeof(line), maps)) {
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %399s", &from, &end, rights, name) < 3)
			abort();
		if (is_to_scan(rights, name) && end - from < SHADOW_MIN)
			count += count_between(needle, from, end);
	}
	fclose(maps);
	return count;
}
