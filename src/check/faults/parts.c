// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/parts.h"

#include "base/array.h"
#include "check/faults/names.h"
#include "check/faults/near.h"
#include "check/faults/units.h"
#include "check/faults/words.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WR_MAX 65536

static bool read_count(struct aw_fault_parse *parse, struct aw_slice value, uint64_t *count)
{
	unsigned long number;

	if (!aw_slice_number(value, ULONG_MAX, &number) || !number)
		return aw_fault_fail(parse, value, "must be a number from 1 on, as in nth=3");
	*count = number;
	return true;
}

static bool read_nth(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_count(parse, value, &parse->fault->when.nth);
}

static bool read_from(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_count(parse, value, &parse->fault->when.from);
}

static bool read_every(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_count(parse, value, &parse->fault->when.every);
}

static bool read_times(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_count(parse, value, &parse->fault->when.times);
}

static bool read_prob(struct aw_fault_parse *parse, struct aw_slice value)
{
	if (!aw_unit_probability(value, &parse->fault->when.probability))
		return aw_fault_fail(parse, value,
				     "must be above 0 and at most 1, as in prob=0.01 or prob=1%%");
	return true;
}

static bool read_time(struct aw_fault_parse *parse, struct aw_slice value, uint64_t *ns)
{
	if (!aw_unit_time(value, ns))
		return aw_fault_fail(parse, value,
				     "must be a time in us, ms, s or min, as in 250ms");
	return true;
}

static bool read_after(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_time(parse, value, &parse->fault->when.after_ns);
}

static bool read_delay(struct aw_fault_parse *parse, struct aw_slice value)
{
	return read_time(parse, value, &parse->fault->delay_ns);
}

/* Names the word that is near the value, or says what is one. */
static bool fail_word(struct aw_fault_parse *parse, struct aw_slice value, const char *near,
		      const char *what, const char *example)
{
	if (near)
		return aw_fault_fail(parse, value, "'%.*s' is no %s: %s is one", (int)value.len,
				     value.at, what, near);
	return aw_fault_fail(parse, value, "'%.*s' is no %s: %s is one", (int)value.len, value.at,
			     what, example);
}

static bool read_error(struct aw_fault_parse *parse, struct aw_slice value)
{
	const struct aw_fault_word *word = aw_fault_word_find(aw_fault_errnos, "", value);

	if (!word)
		return fail_word(parse, value, aw_fault_word_nearest(aw_fault_errnos, "", value),
				 "name of an error", "ENOMEM");
	/* An event of rdma_cm has the negative number. */
	parse->fault->err = parse->fault->kind == AW_FAULT_CM ? -word->value : word->value;
	return true;
}

static bool read_reason(struct aw_fault_parse *parse, struct aw_slice value)
{
	unsigned long reason;

	if (!aw_slice_number(value, UINT16_MAX, &reason))
		return aw_fault_fail(parse, value,
				     "must be the number of a reject reason, as in reason=28");
	parse->fault->err = (int)reason;
	return true;
}

static bool read_wr(struct aw_fault_parse *parse, struct aw_slice value)
{
	unsigned long number;

	if (!aw_slice_number(value, WR_MAX, &number) || !number)
		return aw_fault_fail(parse, value,
				     "must be the number of a WR in the list, from 1 on");
	parse->fault->wr = (unsigned)number;
	return true;
}

static bool read_op(struct aw_fault_parse *parse, struct aw_slice value)
{
	const struct aw_fault_word *word = aw_fault_word_find(aw_fault_ops, "", value);

	if (!word)
		return fail_word(parse, value, aw_fault_word_nearest(aw_fault_ops, "", value),
				 "operation of a completion",
				 "send, write, read, atomic, comp_swap, fetch_add, bind_mw, "
				 "local_inv, recv or recv_imm");
	parse->fault->ops = (uint32_t)word->value;
	return true;
}

static bool read_status(struct aw_fault_parse *parse, struct aw_slice value)
{
	const struct aw_fault_word *word = aw_fault_word_find(aw_fault_statuses, "IBV_WC_", value);

	if (!word)
		return fail_word(parse, value,
				 aw_fault_word_nearest(aw_fault_statuses, "IBV_WC_", value),
				 "status of a failed completion", "WR_FLUSH_ERR");
	parse->fault->status = (enum ibv_wc_status)word->value;
	return true;
}

static bool read_at(struct aw_fault_parse *parse, struct aw_slice value)
{
	const char *near = aw_fault_name_nearest(value);

	for (unsigned i = 0; aw_fault_name(i); i++) {
		if (aw_fault_name_matches(value, aw_fault_name(i))) {
			parse->fault->name = value;
			return true;
		}
	}
	return fail_word(parse, value, near, "function of verbs or rdma_cm", "ibv_post_send");
}

static bool read_byte(struct aw_fault_parse *parse, struct aw_slice value)
{
	if (!aw_unit_bytes(value, &parse->fault->byte))
		return aw_fault_fail(parse, value, "must be a number of bytes, as in 4096 or 1MB");
	parse->fault->at_byte = parse->fault->kind == AW_FAULT_SELF;
	return true;
}

static bool read_rate(struct aw_fault_parse *parse, struct aw_slice value)
{
	if (!aw_unit_rate(value, &parse->fault->rate))
		return aw_fault_fail(parse, value, "must be a rate, as in 10MB/s or 100Mbit/s");
	return true;
}

static const struct {
	const char *name;
	bool (*read)(struct aw_fault_parse *parse, struct aw_slice value);
} keys[AW_KEYS] = {
	[AW_KEY_NTH] = { "nth", read_nth },
	[AW_KEY_FROM] = { "from", read_from },
	[AW_KEY_EVERY] = { "every", read_every },
	[AW_KEY_TIMES] = { "times", read_times },
	[AW_KEY_PROB] = { "prob", read_prob },
	[AW_KEY_AFTER] = { "after", read_after },
	[AW_KEY_ERROR] = { "error", read_error },
	[AW_KEY_DELAY] = { "delay", read_delay },
	[AW_KEY_WR] = { "wr", read_wr },
	[AW_KEY_OP] = { "op", read_op },
	[AW_KEY_STATUS] = { "status", read_status },
	[AW_KEY_REASON] = { "reason", read_reason },
	[AW_KEY_AT] = { "at", read_at },
	[AW_KEY_BYTE] = { "byte", read_byte },
	[AW_KEY_RATE] = { "rate", read_rate },
	[AW_KEY_DIRECTION] = { "send or recv", NULL },
};

static bool fail_key(struct aw_fault_parse *parse, struct aw_slice key)
{
	struct aw_near near = aw_near_to(key);
	char list[160] = "";
	size_t len = 0;

	for (unsigned i = 0; i < AW_KEYS; i++)
		if (parse->allowed & AW_KEY_BIT(i) && keys[i].read)
			aw_near_try(&near, keys[i].name);
	if (near.word)
		return aw_fault_fail(parse, key, "there is no '%.*s' here: %s is meant?",
				     (int)key.len, key.at, near.word);
	for (unsigned i = 0; i < AW_KEYS; i++)
		if (parse->allowed & AW_KEY_BIT(i) && len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", keys[i].name);
	return aw_fault_fail(parse, key, "there is no '%.*s' here: this fault takes %s",
			     (int)key.len, key.at, list);
}

static bool note_key(struct aw_fault_parse *parse, unsigned key, struct aw_slice part)
{
	if (parse->given & AW_KEY_BIT(key))
		return aw_fault_fail(parse, part, "is there twice: leave one of them out");
	parse->given |= AW_KEY_BIT(key);
	parse->where[key] = part;
	return true;
}

static bool read_word(struct aw_fault_parse *parse, struct aw_slice part)
{
	bool is_recv = aw_slice_equals(part, "recv");

	if (parse->allowed & AW_KEY_BIT(AW_KEY_DIRECTION) &&
	    (is_recv || aw_slice_equals(part, "send"))) {
		parse->fault->direction = is_recv ? AW_WIRE_RECV : AW_WIRE_SEND;
		return note_key(parse, AW_KEY_DIRECTION, part);
	}
	for (unsigned i = 0; i < AW_KEYS; i++)
		if (parse->allowed & AW_KEY_BIT(i) && aw_slice_equals(part, keys[i].name))
			return aw_fault_fail(parse, part, "needs a value: %s=VALUE", keys[i].name);
	return fail_key(parse, part);
}

bool aw_fault_part_read(struct aw_fault_parse *parse, struct aw_slice part)
{
	struct aw_slice value = part, key;
	unsigned i;

	if (!part.len)
		return aw_fault_fail(parse, part, "there is nothing between two colons");
	if (!memchr(part.at, '=', part.len))
		return read_word(parse, part);
	key = aw_slice_cut(&value, '=');
	for (i = 0; i < AW_KEYS; i++)
		if (parse->allowed & AW_KEY_BIT(i) && keys[i].read &&
		    aw_slice_equals(key, keys[i].name))
			break;
	if (i == AW_KEYS)
		return fail_key(parse, key);
	return note_key(parse, i, part) && keys[i].read(parse, value);
}

bool aw_fault_fail(struct aw_fault_parse *parse, struct aw_slice slice, const char *format, ...)
{
	struct aw_fault_problem *problem = parse->problem;
	va_list args;

	problem->at = (size_t)(slice.at - parse->text);
	problem->len = slice.len;
	va_start(args, format);
	vsnprintf(problem->why, sizeof(problem->why), format, args);
	va_end(args);
	return false;
}
