// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define SIZE_MAX_OCTETS (16u << 20)
#define HOTSPOT_SIZE_MAX (64u << 10)
#define WORDS_MAX 24
#define BIT(test) (1u << (test))
#define TIMED (BIT(TEST_LATENCY) | BIT(TEST_BANDWIDTH) | BIT(TEST_HOTSPOT))

enum kind {
	KIND_COUNT,
	KIND_SECONDS,
	KIND_CHOICE
};

struct key {
	const char *name;
	size_t offset; /* in struct args */
	uint32_t tests; /* bits of those that take it */
	enum kind kind;
	uint64_t min, max;
	const char *const *choices; /* ends in NULL */
};

static const char *const test_names[] = {
	"latency", "bandwidth", "connect", "hotspot", "idle", NULL
};
static const char *const op_names[] = { "send", "write", "write-cq", "read", "send-done", NULL };
static const char *const mode_names[] = { "block", "spin",	 "epoll", "event",
					  "poll",  "epoll-edge", NULL };
static const char *const direction_names[] = { "uni", "bi", NULL };
static const char *const by_names[] = { "rdma_cm", "modify_qp", NULL };
static const char *const fan_names[] = { "none", "in", "out", NULL };
static const char *const combine_names[] = { "off", "on", NULL };

#define AT(field) offsetof(struct args, field)

static const struct key keys[] = {
	{ "op", AT(op), BIT(TEST_LATENCY) | BIT(TEST_BANDWIDTH), KIND_CHOICE, 0, 0, op_names },
	{ "mode", AT(mode), TIMED, KIND_CHOICE, 0, 0, mode_names },
	{ "size", AT(size), TIMED, KIND_COUNT, 1, SIZE_MAX_OCTETS, NULL },
	{ "seconds", AT(seconds), TIMED, KIND_SECONDS, 0, 3600, NULL },
	{ "iterations", AT(iterations), BIT(TEST_LATENCY), KIND_COUNT, 1, 1u << 30, NULL },
	{ "window", AT(window), BIT(TEST_BANDWIDTH), KIND_COUNT, 1, 128, NULL },
	{ "direction", AT(direction), BIT(TEST_BANDWIDTH), KIND_CHOICE, 0, 0, direction_names },
	{ "batch", AT(batch), BIT(TEST_BANDWIDTH), KIND_COUNT, 1, 128, NULL },
	{ "streams", AT(streams), BIT(TEST_BANDWIDTH), KIND_COUNT, 1, 64, NULL },
	{ "threads", AT(threads), BIT(TEST_BANDWIDTH), KIND_COUNT, 1, 64, NULL },
	{ "fan", AT(fan), BIT(TEST_BANDWIDTH), KIND_CHOICE, 0, 0, fan_names },
	{ "peers", AT(peers), BIT(TEST_BANDWIDTH), KIND_COUNT, 1, 64, NULL },
	{ "combine", AT(combine), BIT(TEST_BANDWIDTH), KIND_CHOICE, 0, 0, combine_names },
	{ "by", AT(by), BIT(TEST_LATENCY) | BIT(TEST_BANDWIDTH), KIND_CHOICE, 0, 0, by_names },
	{ "count", AT(count), BIT(TEST_CONNECT), KIND_COUNT, 1, 1000000, NULL },
	{ "at_once", AT(at_once), BIT(TEST_CONNECT), KIND_COUNT, 1, ARGS_AT_ONCE_MAX, NULL },
	{ "clients", AT(clients), BIT(TEST_HOTSPOT), KIND_COUNT, 1, 512, NULL },
	{ "connections", AT(connections), BIT(TEST_IDLE), KIND_COUNT, 1, 10000, NULL },
};

static bool refuse(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool read_pair(struct args *args, char *word, char *why);
static bool agree(const struct args *args, const struct args_rules *rules, char *why);
static void list(const char *const *names, char *text);
static int choice_of(const char *const *names, const char *text);

static uint64_t *count_at(const struct args *args, const struct key *key)
{
	return (uint64_t *)((char *)args + key->offset);
}

bool args_read(struct args *args, const struct args_rules *rules, int count, char **words,
	       char *why)
{
	char known[ARGS_TEXT_MAX];
	int test = count > 0 ? choice_of(test_names, words[0]) : -1;

	if (test < 0) {
		list(test_names, known);
		return refuse(why, "no test '%.80s': name one of %s", count > 0 ? words[0] : "",
			      known);
	}
	*args = (struct args){ .test = (enum test)test,
			       .mode = rules->mode_default[test],
			       .size = test == TEST_BANDWIDTH ? 65536 : 4,
			       .seconds = 1,
			       .window = 16,
			       .batch = 1,
			       .streams = 1,
			       .threads = 1,
			       .peers = 2,
			       .count = 100,
			       .at_once = 1,
			       .clients = 8,
			       .connections = 100 };
	for (int i = 1; i < count; i++) {
		if (!read_pair(args, words[i], why))
			return false;
	}
	return agree(args, rules, why);
}

void args_line(const struct args *args, char *line)
{
	size_t used = (size_t)snprintf(line, ARGS_TEXT_MAX, "%s", test_names[args->test]);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct key *key = &keys[i];
		uint64_t value = *count_at(args, key);

		if (!(key->tests & BIT(args->test)) ||
		    (key->offset == AT(iterations) && value == 0))
			continue;
		line += used;
		if (key->kind == KIND_CHOICE)
			used = (size_t)sprintf(line, " %s=%s", key->name, key->choices[value]);
		else if (key->kind == KIND_SECONDS)
			used = (size_t)sprintf(line, " %s=%.9g", key->name, args->seconds);
		else
			used = (size_t)sprintf(line, " %s=%" PRIu64, key->name, value);
	}
}

bool args_read_line(struct args *args, const struct args_rules *rules, const char *line, char *why)
{
	char copy[ARGS_TEXT_MAX];
	char *words[WORDS_MAX];
	char *rest = NULL;
	int count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word && count < WORDS_MAX;
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	return args_read(args, rules, count, words, why);
}

void args_json(const struct args *args, struct json *json)
{
	json_text(json, "test", test_names[args->test]);
	json_open(json, "parameters");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct key *key = &keys[i];
		uint64_t value = *count_at(args, key);

		if (!(key->tests & BIT(args->test)))
			continue;
		if (key->kind == KIND_CHOICE)
			json_text(json, key->name, key->choices[value]);
		else if (key->kind == KIND_SECONDS)
			json_real(json, key->name, args->seconds);
		else
			json_count(json, key->name, value);
	}
	json_close(json);
}

uint64_t args_connections(const struct args *args)
{
	switch (args->test) {
	case TEST_LATENCY:
		return 1;
	case TEST_BANDWIDTH:
		return args->fan == FAN_NONE ? args->streams * args->threads : args->peers;
	case TEST_CONNECT:
		return args->count;
	case TEST_HOTSPOT:
		return args->clients;
	case TEST_IDLE:
		return args->connections + ARGS_IDLE_BUSY;
	case TEST_COUNT:
		break;
	}
	return 0;
}

static bool refuse(char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, ARGS_TEXT_MAX, format, args);
	va_end(args);
	return false;
}

static int choice_of(const char *const *names, const char *text)
{
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], text) == 0)
			return i;
	}
	return -1;
}

/* "a, b, c" into ARGS_TEXT_MAX bytes. */
static void list(const char *const *names, char *text)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; names[i]; i++)
		used += (size_t)snprintf(text + used, ARGS_TEXT_MAX - used, "%s%s", i ? ", " : "",
					 names[i]);
}

static bool read_choice(uint64_t *value, const struct key *key, const char *text, char *why)
{
	char known[ARGS_TEXT_MAX];
	int choice = choice_of(key->choices, text);

	if (choice < 0) {
		list(key->choices, known);
		return refuse(why, "%s=%.80s: use one of %s", key->name, text, known);
	}
	*value = (uint64_t)choice;
	return true;
}

static bool read_count(uint64_t *value, const struct key *key, const char *text, char *why)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || number < key->min ||
	    number > key->max)
		return refuse(why, "%s=%.80s: give a whole number from %" PRIu64 " to %" PRIu64,
			      key->name, text, key->min, key->max);
	*value = number;
	return true;
}

static bool read_seconds(double *value, const struct key *key, const char *text, char *why)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number > 0 && number <= (double)key->max))
		return refuse(why, "%s=%.80s: give seconds above 0, up to %" PRIu64, key->name,
			      text, key->max);
	*value = number;
	return true;
}

static const struct key *key_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

static bool read_value(struct args *args, const struct key *key, const char *text, char *why)
{
	switch (key->kind) {
	case KIND_COUNT:
		return read_count(count_at(args, key), key, text, why);
	case KIND_SECONDS:
		return read_seconds(&args->seconds, key, text, why);
	case KIND_CHOICE:
		return read_choice(count_at(args, key), key, text, why);
	}
	return false;
}

static bool read_pair(struct args *args, char *word, char *why)
{
	const struct key *key;
	char *equals = strchr(word, '=');
	size_t length;
	char name[32];

	if (!equals)
		return refuse(why, "'%.80s': write key=value", word);
	length = (size_t)(equals - word);
	snprintf(name, sizeof(name), "%.*s", (int)(length < 31 ? length : 31), word);
	key = key_of(name);
	if (!key)
		return refuse(why, "no key '%s': bench/worker/args.c lists them", name);
	if (!(key->tests & BIT(args->test)))
		return refuse(why, "key '%s' means nothing to test '%s': leave it out", name,
			      test_names[args->test]);
	return read_value(args, key, equals + 1, why);
}

static bool agree_bandwidth(const struct args *args, const struct args_rules *rules, char *why)
{
	if (args->op == OP_WRITE_CQ)
		return refuse(why, "op=write-cq is for latency: use op=write");
	if (args->op == OP_SEND_DONE)
		return refuse(why, "op=send-done is for latency: use op=send");
	if (args->op == OP_READ && (args->direction == DIRECTION_BI || args->fan != FAN_NONE))
		return refuse(why, "op=read goes one way between two processes: use direction=uni "
				   "and fan=none");
	if (args->fan != FAN_NONE &&
	    (args->direction == DIRECTION_BI || args->streams > 1 || args->threads > 1))
		return refuse(why,
			      "fan=%s has one connection a peer, one way: use direction=uni "
			      "streams=1 threads=1",
			      fan_names[args->fan]);
	if (rules->has_window && args->batch > args->window)
		return refuse(why,
			      "batch=%" PRIu64 " exceeds window=%" PRIu64
			      ": a batch is posted at once, give a larger window",
			      args->batch, args->window);
	if (args->by && args->fan != FAN_NONE)
		return refuse(why, "by=%s is between two processes: use fan=none",
			      by_names[args->by]);
	if (args->combine && !rules->has_combine)
		return refuse(why, "combine=on is for streams of bytes: messages stay apart here");
	return true;
}

static bool agree_plain(const struct args *args, char *why)
{
	if (args->test == TEST_HOTSPOT || args->test == TEST_IDLE)
		return refuse(why, "no test '%s' here: name one of latency, bandwidth, connect",
			      test_names[args->test]);
	if (args->op != OP_SEND || args->direction != DIRECTION_UNI || args->fan != FAN_NONE ||
	    args_connections(args) != (args->test == TEST_CONNECT ? args->count : 1) ||
	    args->at_once != 1 || args->batch != 1)
		return refuse(
			why, "one message at a time is sent here, over one connection: use op=send "
			     "direction=uni fan=none streams=1 threads=1 batch=1 at_once=1");
	return true;
}

/* Returns whether the values go together. */
static bool agree(const struct args *args, const struct args_rules *rules, char *why)
{
	if (rules->is_plain && !agree_plain(args, why))
		return false;
	if (rules->modes[args->test] && !(rules->modes[args->test] & BIT(args->mode))) {
		const char *known[MODE_COUNT + 1] = { NULL };
		char text[ARGS_TEXT_MAX];
		int count = 0;

		for (int mode = 0; mode < MODE_COUNT; mode++) {
			if (rules->modes[args->test] & BIT(mode))
				known[count++] = mode_names[mode];
		}
		list(known, text);
		return refuse(why, "mode=%s does not exist here: use one of %s",
			      mode_names[args->mode], text);
	}
	if (args->test == TEST_LATENCY && args->op == OP_WRITE && args->mode == MODE_EVENT)
		return refuse(why, "op=write is polled in memory and raises no event: use "
				   "mode=spin, or op=write-cq");
	if (args->op == OP_SEND_DONE && (args->mode != MODE_SPIN || !args->by))
		return refuse(why, "op=send-done polls for what acknowledges: use mode=spin "
				   "by=modify_qp");
	if (args->test == TEST_HOTSPOT && args->size > HOTSPOT_SIZE_MAX)
		return refuse(why, "size=%" PRIu64 ": the hot-spot test goes up to %u", args->size,
			      HOTSPOT_SIZE_MAX);
	if (args->by && !rules->has_by)
		return refuse(why, "by=%s: there are no QPs here, leave it out",
			      by_names[args->by]);
	return args->test != TEST_BANDWIDTH || agree_bandwidth(args, rules, why);
}
