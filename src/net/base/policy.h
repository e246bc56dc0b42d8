// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_MPA: the user's settings of MPA start-up. A comma-separated list of
// key=value; a key that is not named keeps its default. No state: policy_env.c reads the
// environment.
#ifndef NET_POLICY_H
#define NET_POLICY_H

#include "core/startup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_POLICY_ENV "ANYWARP_MPA"
#define AW_POLICY_TEXT_MAX 128 /* bytes of the longest list, with its NUL */
#define AW_POLICY_WHY_MAX 256 /* bytes of the longest error, with its NUL */
#define AW_POLICY_RTR_MAX 16 /* bytes of the longest RTR mask as text, with its NUL */

struct aw_policy {
	uint8_t revision; /* the highest to ask with and to answer, 1 or 2 */
	bool markers; /* ask the peer to send markers */
	bool crc; /* ask for CRCs; off only when the peer does not ask either */
	bool crc_given; /* crc=on is in the list: under TLS as well, which does without otherwise */
	bool p2p; /* initiator: ask for the peer-to-peer model */
	/* RTR messages that this end sends or takes (mask of enum mpa_rtr); never empty */
	uint8_t rtr;
	bool extensions; /* offer or agree to the private RFC 7306 extension */
	enum aw_large_fpdus large_fpdus;
	bool ird_ord_ulp; /* IRD and ORD are left to the programs: 0x3FFF on the wire */
};

/* The policy without ANYWARP_MPA. */
extern const struct aw_policy aw_policy_default;

/*
 * Reads list (NULL or empty: the default). On false policy is left alone, and why, of
 * AW_POLICY_WHY_MAX bytes, names the item, its error and the values allowed.
 */
__attribute__((warn_unused_result)) bool aw_policy_parse(const char *list, struct aw_policy *policy,
							 char *why);

bool aw_policy_is_default(const struct aw_policy *policy);

/* Writes the words of the mask, joined with '+', into text, of AW_POLICY_RTR_MAX bytes; "none" for 0. */
void aw_policy_print_rtr(uint8_t mask, char *text);

/* Writes the whole list that means policy into text, of AW_POLICY_TEXT_MAX bytes. */
void aw_policy_print(const struct aw_policy *policy, char *text);

#endif
