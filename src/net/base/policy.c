// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_MPA. It is strict: a word that would have no effect is an error, because a
// user who sets up one end of a link has to be able to rely on the list.
#include "net/base/policy.h"

#include "base/array.h"
#include "base/slice.h"
#include "wire/mpa.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTE_MAX 32 /* bytes of the user's text that an error repeats */

struct word {
	const char *name;
	uint8_t value;
};

enum key {
	MARKERS,
	CRC,
	REVISION,
	P2P,
	RTR,
	EXTENSIONS,
	IRD_ORD,
	LARGE_FPDUS,
	KEYS,
};

static const struct word on_off[] = { { "on", true }, { "off", false }, { NULL, 0 } };
static const struct word revisions[] = { { "1", 1 }, { "2", 2 }, { NULL, 0 } };
static const struct word depths[] = { { "auto", false }, { "ulp", true }, { NULL, 0 } };
static const struct word larges[] = {
	{ "on", AW_LARGE_AGREED },
	{ "off", AW_LARGE_OFF },
	{ "any", AW_LARGE_ANY },
	{ NULL, 0 },
};
static const struct word rtrs[] = {
	{ "send", MPA_RTR_SEND },
	{ "write", MPA_RTR_WRITE },
	{ "read", MPA_RTR_READ },
	{ NULL, 0 },
};

static const struct {
	const char *name;
	const char *allowed;
	const struct word *words;
	bool many; /* words may be joined with '+' */
} keys[KEYS] = {
	[MARKERS] = { "markers", "on or off", on_off, false },
	[CRC] = { "crc", "on or off", on_off, false },
	[REVISION] = { "revision", "1 or 2", revisions, false },
	[P2P] = { "p2p", "on or off", on_off, false },
	[RTR] = { "rtr", "one or more of send, write, read, joined with '+'", rtrs, true },
	[EXTENSIONS] = { "extensions", "on or off", on_off, false },
	[IRD_ORD] = { "ird_ord", "auto or ulp", depths, false },
	[LARGE_FPDUS] = { "large_fpdus", "on, off or any", larges, false },
};

const struct aw_policy aw_policy_default = {
	.revision = 2,
	.crc = true,
	.p2p = true,
	.rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
	.extensions = true,
	.large_fpdus = AW_LARGE_AGREED,
};

/* The values by key, as the list gives and takes them. */
struct values {
	uint8_t of[KEYS];
	bool given[KEYS];
};

static void to_values(const struct aw_policy *policy, struct values *values)
{
	*values = (struct values){
		.of = {
			[MARKERS] = policy->markers,
			[CRC] = policy->crc,
			[REVISION] = policy->revision,
			[P2P] = policy->p2p,
			[RTR] = policy->rtr,
			[EXTENSIONS] = policy->extensions,
			[IRD_ORD] = policy->ird_ord_ulp,
			[LARGE_FPDUS] = policy->large_fpdus,
		},
	};
}

static void to_policy(const struct values *values, struct aw_policy *policy)
{
	*policy = (struct aw_policy){
		.revision = values->of[REVISION],
		.markers = values->of[MARKERS],
		.crc = values->of[CRC],
		.crc_given = values->given[CRC] && values->of[CRC],
		.p2p = values->of[P2P],
		.rtr = values->of[RTR],
		.extensions = values->of[EXTENSIONS],
		.ird_ord_ulp = values->of[IRD_ORD],
		.large_fpdus = values->of[LARGE_FPDUS],
	};
}

/* Writes the error of item. Returns false. */
__attribute__((format(printf, 3, 4))) static bool refuse(char *why, struct aw_slice item,
							 const char *format, ...)
{
	size_t at = aw_slice_quote(item, QUOTE_MAX, why);
	va_list args;

	va_start(args, format);
	vsnprintf(why + at, AW_POLICY_WHY_MAX - at, format, args);
	va_end(args);
	return false;
}

/* Reads one word, or several joined with '+', none of them twice. */
static bool read_value(enum key key, struct aw_slice text, uint8_t *value)
{
	bool more = true;

	*value = 0;
	while (more) {
		struct aw_slice rest = text;
		struct aw_slice part = keys[key].many ? aw_slice_cut(&rest, '+') : text;
		const struct word *word = keys[key].words;

		while (word->name && !aw_slice_equals(part, word->name))
			word++;
		if (!word->name || (keys[key].many && (*value & word->value)))
			return false;
		*value |= word->value;
		more = keys[key].many && part.len < text.len;
		text = rest;
	}
	return true;
}

static bool read_item(struct aw_slice item, struct values *values, char *why)
{
	struct aw_slice value = item;
	struct aw_slice name = aw_slice_cut(&value, '=');
	enum key key = 0;

	while (key < KEYS && !aw_slice_equals(name, keys[key].name))
		key++;
	if (key == KEYS)
		return refuse(why, item,
			      "no such key; allowed are markers, crc, revision, p2p, rtr, "
			      "extensions, ird_ord, large_fpdus, each as key=value");
	if (values->given[key])
		return refuse(why, item, "%s is given twice", keys[key].name);
	if (name.len == item.len || !read_value(key, value, &values->of[key]))
		return refuse(why, item, "%s must be %s", keys[key].name, keys[key].allowed);
	values->given[key] = true;
	return true;
}

/* Frames of revision 1 have no place for the settings of RFC 6581. */
static bool check_revision(const struct values *values, char *why)
{
	static const enum key enhanced[] = { P2P, EXTENSIONS, LARGE_FPDUS, RTR };

	if (values->of[REVISION] > 1)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(enhanced); i++) {
		enum key key = enhanced[i];
		struct aw_slice name = aw_slice_of(keys[key].name);

		if (values->given[key] && values->of[key])
			return refuse(why, name, "needs revision=2, and the list says revision=1");
	}
	return true;
}

bool aw_policy_parse(const char *list, struct aw_policy *policy, char *why)
{
	struct aw_slice rest = aw_slice_of(list);
	bool more = rest.len > 0;
	struct values values;

	to_values(&aw_policy_default, &values);
	while (more) {
		size_t before = rest.len;
		struct aw_slice item = aw_slice_cut(&rest, ',');

		if (!read_item(item, &values, why))
			return false;
		more = item.len < before; /* after a comma another item is due */
	}
	if (!check_revision(&values, why))
		return false;
	to_policy(&values, policy);
	return true;
}

bool aw_policy_is_default(const struct aw_policy *policy)
{
	struct values values, standard;

	to_values(policy, &values);
	to_values(&aw_policy_default, &standard);
	return memcmp(values.of, standard.of, sizeof(values.of)) == 0;
}

static size_t print_value(enum key key, uint8_t value, char *text)
{
	size_t at = 0;

	for (const struct word *word = keys[key].words; word->name; word++) {
		bool named = keys[key].many ? value & word->value : value == word->value;

		if (named)
			at += (size_t)sprintf(text + at, "%s%s", at ? "+" : "", word->name);
	}
	return at;
}

void aw_policy_print_rtr(uint8_t mask, char *text)
{
	if (print_value(RTR, mask, text) == 0)
		strcpy(text, "none");
}

void aw_policy_print(const struct aw_policy *policy, char *text)
{
	struct values values;
	size_t at = 0;

	to_values(policy, &values);
	for (enum key key = 0; key < KEYS; key++) {
		bool enhanced = key == P2P || key == RTR || key == EXTENSIONS || key == LARGE_FPDUS;

		/* Revision 1 cannot express these settings; without them the text can be read back. */
		if (enhanced && values.of[REVISION] <= 1)
			continue;
		at += (size_t)sprintf(text + at, "%s%s=", at ? "," : "", keys[key].name);
		at += print_value(key, values.of[key], text + at);
	}
}
