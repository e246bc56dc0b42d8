// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why this end refused its peer's request for memory, in words: by what the device says, and by the MRs that the program has and
// had. Pure.
#ifndef CHECK_MODEL_REFUSAL_H
#define CHECK_MODEL_REFUSAL_H

#include "anywarp/check.h"
#include "check/model/verbs.h"

/* The MR that a refused request leads to, the best guess last. */
enum aw_refused_by {
	AW_REFUSED_BY_NOTHING,
	AW_REFUSED_BY_ADDRESS, /* it covers the address, and has another rkey */
	AW_REFUSED_BY_SWAPPED, /* it has the rkey with its bytes in the other order */
	AW_REFUSED_BY_GONE, /* it had the rkey, and was deregistered */
	AW_REFUSED_BY_RKEY, /* it has the rkey */
};

struct aw_refused {
	const struct anywarp_refusal *refusal;
	const void *pd; /* of the QP */
	enum aw_refused_by by;
	const struct aw_mr_shadow *mr; /* NULL with BY_NOTHING */
};

/* Takes the MR for the one that is meant, where it is a better guess than the one before. True: it did. */
bool aw_refused_consider(struct aw_refused *refused, const struct aw_mr_shadow *mr);

#define AW_REFUSED_MAX 320
/* Why the request was refused, after all MRs were considered. */
void aw_refused_explain(const struct aw_refused *refused, char why[AW_REFUSED_MAX]);

/* "Write", "Read" or "atomic": what needs the right. */
const char *aw_refused_request(unsigned access);

#endif
