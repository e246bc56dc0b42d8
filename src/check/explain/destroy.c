// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why an object was not destroyed: what holds it.
#include "check/explain/words.h"

#include <errno.h>

void aw_explain_destroy(const char *call, const struct aw_explain_users *users, int err,
			char why[AW_EXPLAIN_MAX])
{
	const struct {
		unsigned count;
		const char *one, *many;
	} parts[] = {
		{ users->qps, "QP", "QPs" },
		{ users->cqs, "CQ", "CQs" },
		{ users->srqs, "SRQ", "SRQs" },
		{ users->mrs, "MR", "MRs" },
		{ users->mws, "memory window", "memory windows" },
		{ users->ahs, "address handle", "address handles" },
		{ users->groups, "multicast group (ibv_detach_mcast)",
		  "multicast groups (ibv_detach_mcast)" },
		{ users->imports, "parent domain or import", "parent domains or imports" },
	};
	unsigned left = 0, kinds = 0;

	for (size_t i = 0; i < AW_ARRAY_LEN(parts); i++)
		left += parts[i].count > 0;
	if (err != EBUSY || !left) {
		aw_explain_errno(call, err, why);
		return;
	}
	aw_reason_set(why, "still held by ");
	for (size_t i = 0; i < AW_ARRAY_LEN(parts); i++) {
		if (!parts[i].count)
			continue;
		left--;
		if (kinds++)
			aw_reason_add(why, left ? ", " : " and ");
		aw_reason_add(why, "%u %s", parts[i].count,
			      parts[i].count == 1 ? parts[i].one : parts[i].many);
	}
}
