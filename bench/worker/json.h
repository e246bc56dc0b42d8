// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One JSON object in a buffer. A text that does not fit is an error when it is printed, never a cut
// object.
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX 4096

struct json {
	char text[JSON_MAX];
	size_t used;
	bool comma; /* the next member follows another one */
	bool overflow;
};

void json_begin(struct json *json);
void json_end(struct json *json);

/* key NULL: no member's name, for the outermost object alone. */
void json_open(struct json *json, const char *key);
void json_close(struct json *json);
void json_text(struct json *json, const char *key, const char *value);
void json_count(struct json *json, const char *key, uint64_t value);

/* Nine significant digits; a number that is not finite becomes null. */
void json_real(struct json *json, const char *key, double value);

/* One line. False when the object did not fit or the file did not take it. */
bool json_print(const struct json *json, FILE *file) __attribute__((warn_unused_result));

#endif
