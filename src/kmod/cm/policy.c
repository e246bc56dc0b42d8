// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The defaults are those of user space (net/base/policy.c). Read at each start-up.
#include "kmod/cm/policy.h"

#include "kmod/base/limits.h"
#include "wire/mpa.h"

#include <linux/minmax.h>
#include <linux/module.h>

static bool crc = true;
module_param(crc, bool, 0644);
MODULE_PARM_DESC(crc, "ask for CRCs; off only when the peer does not ask either (default: on)");

static bool markers;
module_param(markers, bool, 0644);
MODULE_PARM_DESC(markers, "ask the peer for markers (default: off)");

static bool p2p = true;
module_param(p2p, bool, 0644);
MODULE_PARM_DESC(p2p, "as initiator: ask for the peer-to-peer model of RFC 6581 (default: on)");

/*
 * Off by default: a peer's immediate data would be lost, because siw's completions have no place
 * for it.
 */
static bool extensions;
module_param(extensions, bool, 0644);
MODULE_PARM_DESC(extensions, "offer or agree to atomics and immediate data (default: off)");

static bool large_fpdus = true;
module_param(large_fpdus, bool, 0644);
MODULE_PARM_DESC(
	large_fpdus,
	"take and send FPDUs longer than a TCP segment where the peer does as well (default: on)");

static int revision_set(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, 2);
}

static const struct kernel_param_ops revision_ops = {
	.set = revision_set,
	.get = param_get_uint,
};

static unsigned int revision = 2;
module_param_cb(revision, &revision_ops, &revision, 0644);
MODULE_PARM_DESC(revision, "highest MPA revision to ask with and to answer, 1 or 2 (default: 2)");

struct aw_mpa_local awk_policy_local(u32 ird, u32 ord)
{
	unsigned int highest = READ_ONCE(revision);

	return (struct aw_mpa_local){
		.revision = highest,
		.markers = READ_ONCE(markers),
		.crc = READ_ONCE(crc),
		.p2p = READ_ONCE(p2p) && highest > 1,
		.rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
		.ird = min_t(u32, ird, AWK_RD_MAX),
		.ord = min_t(u32, ord, AWK_RD_MAX),
		.extensions = READ_ONCE(extensions),
		.large_fpdus = READ_ONCE(large_fpdus) ? AW_LARGE_AGREED : AW_LARGE_OFF,
	};
}
