// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static void add(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_key(struct json *json, const char *key);
static void add_quoted(struct json *json, const char *text);

void json_begin(struct json *json)
{
	memset(json, 0, sizeof(*json));
	json_open(json, NULL);
}

void json_end(struct json *json)
{
	json_close(json);
}

void json_open(struct json *json, const char *key)
{
	if (key)
		add_key(json, key);
	add(json, "{");
	json->comma = false;
}

void json_close(struct json *json)
{
	add(json, "}");
	json->comma = true;
}

void json_text(struct json *json, const char *key, const char *value)
{
	add_key(json, key);
	add_quoted(json, value);
}

void json_count(struct json *json, const char *key, uint64_t value)
{
	add_key(json, key);
	add(json, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
	add_key(json, key);
	if (isfinite(value))
		add(json, "%.9g", value);
	else
		add(json, "null");
}

bool json_print(const struct json *json, FILE *file)
{
	if (json->overflow)
		return false;
	return fprintf(file, "%s\n", json->text) > 0 && fflush(file) == 0;
}

static void add(struct json *json, const char *format, ...)
{
	size_t room = sizeof(json->text) - json->used;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(json->text + json->used, room, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= room) {
		json->overflow = true;
		return;
	}
	json->used += (size_t)length;
}

static void add_key(struct json *json, const char *key)
{
	if (json->comma)
		add(json, ", ");
	json->comma = true;
	add_quoted(json, key);
	add(json, ": ");
}

static void add_quoted(struct json *json, const char *text)
{
	add(json, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			add(json, "\\%c", c);
		else if (c < 0x20)
			add(json, "\\u%04x", c);
		else
			add(json, "%c", c);
	}
	add(json, "\"");
}
