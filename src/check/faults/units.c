// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/units.h"

#include <string.h>
#include <strings.h>

#define BILLION UINT64_C(1000000000)

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {
	{ "", BILLION },  { "ns", 1 },	      { "us", 1000 },	       { "ms", 1000000 },
	{ "s", BILLION }, { "sec", BILLION }, { "min", 60 * BILLION }, { NULL, 0 },
};
static const struct unit sizes[] = {
	{ "", 1 },	  { "b", 1 },	      { "k", 1000 },	  { "kb", 1000 },
	{ "m", 1000000 }, { "mb", 1000000 },  { "g", BILLION },	  { "gb", BILLION },
	{ "kib", 1024 },  { "mib", 1 << 20 }, { "gib", 1 << 30 }, { NULL, 0 },
};
static const struct unit rates[] = {
	{ "kbit", 125 },
	{ "mbit", 125000 },
	{ "gbit", 125000000 },
	{ NULL, 0 },
};
static const struct unit shares[] = {
	{ "", AW_FAULT_CERTAIN },
	{ "%", AW_FAULT_CERTAIN / 100 },
	{ NULL, 0 },
};

struct decimal {
	uint64_t whole;
	uint64_t billionths;
};

/* Removes the number from the text, so that the unit is left. Digits behind the ninth of a fraction are ignored. */
static bool take_decimal(struct aw_slice *text, struct decimal *number)
{
	uint64_t *part = &number->whole;
	uint64_t place = BILLION;
	size_t digits = 0, at = 0;

	*number = (struct decimal){ 0, 0 };
	for (; at < text->len; at++) {
		unsigned digit = (unsigned char)text->at[at] - '0';

		if (text->at[at] == '.' && part == &number->whole && digits) {
			part = &number->billionths;
			continue;
		}
		if (digit > 9)
			break;
		digits++;
		if (part == &number->billionths)
			number->billionths += digit * (place /= 10);
		else if (__builtin_mul_overflow(number->whole, 10, &number->whole) ||
			 __builtin_add_overflow(number->whole, digit, &number->whole))
			return false;
	}
	text->at += at;
	text->len -= at;
	return digits > 0;
}

static const struct unit *find(const struct unit *units, struct aw_slice text)
{
	for (; units->name; units++)
		if (strlen(units->name) == text.len &&
		    strncasecmp(units->name, text.at, text.len) == 0)
			return units;
	return NULL;
}

static bool scale(struct decimal number, const struct unit *unit, uint64_t *value)
{
	uint64_t whole, fraction;

	if (!unit || __builtin_mul_overflow(number.whole, unit->factor, &whole) ||
	    __builtin_mul_overflow(number.billionths, unit->factor, &fraction) ||
	    __builtin_add_overflow(whole, fraction / BILLION, &whole))
		return false;
	*value = whole;
	return true;
}

static bool read_number(struct aw_slice text, const struct unit *units, uint64_t *value)
{
	struct decimal number;

	return take_decimal(&text, &number) && scale(number, find(units, text), value);
}

bool aw_unit_time(struct aw_slice text, uint64_t *ns)
{
	return read_number(text, times, ns);
}

bool aw_unit_bytes(struct aw_slice text, uint64_t *bytes)
{
	return read_number(text, sizes, bytes);
}

bool aw_unit_rate(struct aw_slice text, uint64_t *bytes_per_s)
{
	struct decimal number;
	const struct unit *unit;
	uint64_t value;

	if (!take_decimal(&text, &number))
		return false;
	if (text.len > 2 && strncmp(text.at + text.len - 2, "/s", 2) == 0)
		text.len -= 2;
	unit = find(sizes, text);
	if (!scale(number, unit ? unit : find(rates, text), &value) || !value)
		return false;
	*bytes_per_s = value;
	return true;
}

bool aw_unit_probability(struct aw_slice text, uint64_t *of_certain)
{
	uint64_t value;

	if (!read_number(text, shares, &value) || !value || value > AW_FAULT_CERTAIN)
		return false;
	*of_certain = value;
	return true;
}
