// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/refusal.h"

#include <byteswap.h>
#include <inttypes.h>
#include <stdio.h>

#define EXTENT_MAX 96

const char *aw_refused_request(unsigned access)
{
	if (access == IBV_ACCESS_REMOTE_WRITE)
		return "Write";
	return access == IBV_ACCESS_REMOTE_READ ? "Read" : "atomic";
}

static const char *right_name(unsigned access)
{
	if (access == IBV_ACCESS_REMOTE_WRITE)
		return "IBV_ACCESS_REMOTE_WRITE";
	return access == IBV_ACCESS_REMOTE_READ ? "IBV_ACCESS_REMOTE_READ"
						: "IBV_ACCESS_REMOTE_ATOMIC";
}

static bool covers(uint64_t start, uint64_t size, uint64_t addr, uint64_t length)
{
	return addr >= start && addr - start <= size && length <= size - (addr - start);
}

static enum aw_refused_by relation_find(const struct aw_refused *refused,
					const struct aw_mr_shadow *mr)
{
	const struct anywarp_refusal *refusal = refused->refusal;

	if (mr->rkey == refusal->rkey)
		return atomic_load(&mr->object.is_gone) ? AW_REFUSED_BY_GONE : AW_REFUSED_BY_RKEY;
	if (atomic_load(&mr->object.is_gone))
		return AW_REFUSED_BY_NOTHING;
	if (mr->rkey == bswap_32(refusal->rkey))
		return AW_REFUSED_BY_SWAPPED;
	if (mr->pd == refused->pd && !(mr->access & IBV_ACCESS_ZERO_BASED) &&
	    covers(mr->start, mr->end - mr->start, refusal->addr, refusal->length))
		return AW_REFUSED_BY_ADDRESS;
	return AW_REFUSED_BY_NOTHING;
}

bool aw_refused_consider(struct aw_refused *refused, const struct aw_mr_shadow *mr)
{
	const enum aw_refused_by by = relation_find(refused, mr);

	if (by <= refused->by)
		return false;
	refused->by = by;
	refused->mr = mr;
	return true;
}

/* "; its bytes in the other order, 0x.., lie inside", where that is so of the address; else "". */
static void swapped_address_explain(const struct anywarp_refusal *refusal, uint64_t start,
				    uint64_t size, char why[EXTENT_MAX])
{
	const uint64_t addr = bswap_64(refusal->addr);

	why[0] = '\0';
	if (!covers(start, size, refusal->addr, refusal->length) &&
	    covers(start, size, addr, refusal->length))
		snprintf(why, EXTENT_MAX,
			 "; the address with its bytes in the other order, 0x%" PRIx64
			 ", is inside it",
			 addr);
}

static void unknown_rkey_explain(const struct aw_refused *refused, char why[AW_REFUSED_MAX])
{
	const struct aw_mr_shadow *mr = refused->mr;
	char address[EXTENT_MAX];

	switch (refused->by) {
	case AW_REFUSED_BY_NOTHING:
		snprintf(why, AW_REFUSED_MAX,
			 "no MR has this rkey, and none of the QP's PD covers the address");
		break;
	case AW_REFUSED_BY_ADDRESS:
		snprintf(
			why, AW_REFUSED_MAX,
			"no MR has this rkey; the MR that covers the address has rkey 0x%x (lkey 0x%x)",
			mr->rkey, mr->object.number);
		break;
	case AW_REFUSED_BY_SWAPPED:
		swapped_address_explain(refused->refusal, mr->start, mr->end - mr->start, address);
		snprintf(
			why, AW_REFUSED_MAX,
			"no MR has this rkey, but with its bytes in the other order, 0x%x, one has%s",
			mr->rkey, address);
		break;
	case AW_REFUSED_BY_GONE:
		snprintf(why, AW_REFUSED_MAX,
			 "the MR of this rkey, from 0x%" PRIx64 " to 0x%" PRIx64
			 ", was deregistered",
			 mr->start, mr->end);
		break;
	case AW_REFUSED_BY_RKEY:
		snprintf(
			why, AW_REFUSED_MAX,
			"the MR of this rkey was not registered yet, or was being deregistered or changed");
		break;
	}
}

static void bounds_explain(const struct anywarp_refusal *refusal, char why[AW_REFUSED_MAX])
{
	const uint64_t offset = refusal->addr - refusal->start;
	char where[EXTENT_MAX];

	swapped_address_explain(refusal, refusal->start, refusal->size, where);
	if (where[0] == '\0' && refusal->addr >= refusal->start && offset <= refusal->size)
		snprintf(where, sizeof(where), "; the request ends %" PRIu64 " bytes behind it",
			 refusal->length - (refusal->size - offset));
	snprintf(why, AW_REFUSED_MAX,
		 "the MR or memory window of this rkey covers 0x%" PRIx64 " to 0x%" PRIx64 "%s",
		 refusal->start, refusal->start + refusal->size, where);
}

void aw_refused_explain(const struct aw_refused *refused, char why[AW_REFUSED_MAX])
{
	const struct anywarp_refusal *refusal = refused->refusal;
	const char *right = right_name(refusal->access);

	switch (refusal->cause) {
	case ANYWARP_REFUSAL_RKEY:
		unknown_rkey_explain(refused, why);
		return;
	case ANYWARP_REFUSAL_PD:
		snprintf(why, AW_REFUSED_MAX,
			 "the MR of this rkey belongs to another PD than the QP");
		return;
	case ANYWARP_REFUSAL_WINDOW:
		snprintf(why, AW_REFUSED_MAX,
			 "the memory window of this rkey is bound to another QP");
		return;
	case ANYWARP_REFUSAL_MR_RIGHTS:
		snprintf(why, AW_REFUSED_MAX, "the %s of this rkey was %s without %s",
			 refused->by == AW_REFUSED_BY_RKEY ? "MR" : "memory window",
			 refused->by == AW_REFUSED_BY_RKEY ? "registered" : "bound", right);
		return;
	case ANYWARP_REFUSAL_QP_RIGHTS:
		snprintf(why, AW_REFUSED_MAX,
			 "the QP's qp_access_flags, as ibv_modify_qp set them, are without %s",
			 right);
		return;
	case ANYWARP_REFUSAL_BOUNDS:
		bounds_explain(refusal, why);
		return;
	case ANYWARP_REFUSAL_UNMAPPED:
		snprintf(
			why, AW_REFUSED_MAX,
			"the MR of this rkey covers it, but the memory there is not mapped, or not writable");
		return;
	case ANYWARP_REFUSAL_UNALIGNED:
		snprintf(why, AW_REFUSED_MAX, "the address of an atomic must be a multiple of 8");
		return;
	}
	snprintf(why, AW_REFUSED_MAX, "by cause %d", (int)refusal->cause);
}
