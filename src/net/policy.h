// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_MPA: what a user decides of MPA's start-up. A comma-separated list of
// key=value; what is not named keeps its default. Pure: who reads the environment is elsewhere.
#ifndef NET_POLICY_H
#define NET_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_POLICY_ENV "ANYWARP_MPA"
#define AW_POLICY_TEXT_MAX 128 /* octets of the longest list, with its NUL */
#define AW_POLICY_WHY_MAX 256 /* octets of the longest error, with its NUL */

struct aw_policy {
	uint8_t revision; /* the highest to ask with and to answer, 1 or 2 */
	bool markers; /* ask the peer for markers */
	bool crc; /* ask for CRCs; off only when the peer does not ask either */
	bool p2p; /* initiator: ask for the peer-to-peer model */
	uint8_t rtr; /* mask of enum mpa_rtr that we send or take; never empty */
	bool extensions; /* offer or agree to the private RFC 7306 extension */
	bool ird_ord_ulp; /* IRD and ORD are the programs' business: 0x3FFF on the wire */
};

/* What holds without ANYWARP_MPA. */
extern const struct aw_policy aw_policy_default;

/*
 * Reads list (NULL or empty: the default). On false policy is left alone, and why, of
 * AW_POLICY_WHY_MAX octets, names the item, what is wrong with it and the values allowed.
 */
__attribute__((warn_unused_result)) bool aw_policy_parse(const char *list, struct aw_policy *policy,
							 char *why);

bool aw_policy_is_default(const struct aw_policy *policy);

/* The whole list that means policy, in text of AW_POLICY_TEXT_MAX octets. */
void aw_policy_print(const struct aw_policy *policy, char *text);

#endif
