// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_MPA: any text is either refused with a reason that ends in its buffer, or read; and what
// was read, printed, is read to the same again.
#include "prop/prop.h"

#include "net/base/policy.h"

#include <ctype.h>
#include <string.h>

#define LIST_MAX 200

static const char *const pieces[] = {
	"markers", "crc",  "revision", "p2p",  "rtr",  "extensions", "ird_ord", "=",
	",",	   "+",	   "on",       "off",  "1",    "2",	     "send",	"write",
	"read",	   "auto", "ulp",      "\x01", "\xff", " ",
};

static bool is_usable(const struct aw_policy *policy)
{
	return (policy->revision == 1 || policy->revision == 2) && policy->rtr >= 1 &&
	       policy->rtr <= 7;
}

static void read_again(const struct aw_policy *policy)
{
	char text[AW_POLICY_TEXT_MAX], again[AW_POLICY_TEXT_MAX], why[AW_POLICY_WHY_MAX];
	struct aw_policy got;

	memset(text, 0xff, sizeof(text));
	aw_policy_print(policy, text);
	PROP(memchr(text, 0, sizeof(text)));
	PROP(aw_policy_parse(text, &got, why));
	aw_policy_print(&got, again);
	PROP(strcmp(text, again) == 0);
}

static void reads_or_refuses(const char *list)
{
	char why[AW_POLICY_WHY_MAX];
	struct aw_policy policy;
	const char *end;

	memset(why, 0xff, sizeof(why));
	if (aw_policy_parse(list, &policy, why)) {
		PROP(is_usable(&policy));
		read_again(&policy);
		return;
	}
	end = memchr(why, 0, sizeof(why));
	PROP(end && end > why);
	for (const char *p = why; p < end; p++)
		PROP(isprint((unsigned char)*p));
}

static void any_text(struct bytes *b)
{
	char list[LIST_MAX + 1] = "";
	size_t len = bytes_range(b, 0, LIST_MAX);

	bytes_take(b, (uint8_t *)list, len);
	reads_or_refuses(list);
}

/* The words of the grammar in any order. */
static void near_a_list(struct bytes *b)
{
	char list[LIST_MAX + 1] = "";
	size_t count = bytes_range(b, 0, 20);

	for (size_t i = 0; i < count; i++) {
		const char *piece = pieces[bytes_u8(b) % (sizeof(pieces) / sizeof(pieces[0]))];

		if (strlen(list) + strlen(piece) <= LIST_MAX)
			strcat(list, piece);
	}
	reads_or_refuses(list);
}

/* Every policy that has a meaning. */
static void any_policy(struct bytes *b)
{
	struct aw_policy policy = {
		.revision = (uint8_t)bytes_range(b, 1, 2),
		.markers = bytes_bool(b),
		.crc = bytes_bool(b),
		.p2p = bytes_bool(b),
		.rtr = (uint8_t)bytes_range(b, 1, 7),
		.extensions = bytes_bool(b),
		.ird_ord_ulp = bytes_bool(b),
	};

	read_again(&policy);
}

void prop_run(struct bytes *b)
{
	static void (*const props[])(struct bytes *) = { any_text, near_a_list, any_policy };

	props[bytes_u8(b) % (sizeof(props) / sizeof(props[0]))](b);
}
