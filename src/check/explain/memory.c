// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions and windows.
#include "check/explain/words.h"

#include <errno.h>
#include <limits.h>

#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                            \
	(IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | \
	 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |                    \
	 AW_NEWER_ACCESS_FLUSH | IBV_ACCESS_OPTIONAL_RANGE)
#define WINDOW_ACCESS \
	(IBV_ACCESS_REMOTE_READ | REMOTE_WRITES | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

static bool explain_access(unsigned access, const struct ibv_device_attr *device,
			   char why[AW_EXPLAIN_MAX])
{
	unsigned unknown = access & ~(unsigned)ACCESS_KNOWN;

	if (access & REMOTE_WRITES && !(access & IBV_ACCESS_LOCAL_WRITE)) {
		aw_reason_set(why, "%s", "");
		aw_reason_add_bits(why, access & REMOTE_WRITES, aw_access_name);
		aw_reason_add(why, " %s IBV_ACCESS_LOCAL_WRITE",
			      (access & REMOTE_WRITES) == REMOTE_WRITES ? "need" : "needs");
	} else if (unknown) {
		aw_reason_set(why, "access 0x%x has bits that no IBV_ACCESS_ flag has: 0x%x",
			      access, unknown);
	} else if (access & IBV_ACCESS_HUGETLB && !(access & IBV_ACCESS_ON_DEMAND)) {
		aw_reason_set(why, "IBV_ACCESS_HUGETLB needs IBV_ACCESS_ON_DEMAND");
	} else if (access & IBV_ACCESS_REMOTE_ATOMIC && device &&
		   device->atomic_cap == IBV_ATOMIC_NONE) {
		aw_reason_set(
			why,
			"IBV_ACCESS_REMOTE_ATOMIC, but the device's atomic_cap is IBV_ATOMIC_NONE");
	} else {
		return false;
	}
	return true;
}

static bool explain_range(const void *addr, size_t length, const struct ibv_device_attr *device,
			  char why[AW_EXPLAIN_MAX])
{
	if (!length)
		aw_reason_set(why, "length 0");
	else if (length > UINTPTR_MAX - (uintptr_t)addr)
		aw_reason_set(why, "%zu bytes from %p run over the end of the address space",
			      length, addr);
	else if (device && device->max_mr_size && length > device->max_mr_size)
		aw_reason_set(why, "length %zu, but the device's max_mr_size is %llu", length,
			      (unsigned long long)device->max_mr_size);
	else
		return false;
	return true;
}

void aw_explain_reg_mr(const void *addr, size_t length, unsigned access,
		       const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX])
{
	bool implicit = access & IBV_ACCESS_ON_DEMAND && !addr;
	bool writes = access & (IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITES | IBV_ACCESS_MW_BIND);

	/* An on-demand MR of the whole address space has address 0 and length SIZE_MAX. */
	if (!implicit && err != EFAULT && explain_range(addr, length, device, why))
		return;
	if ((err == EINVAL || err == EOPNOTSUPP) && explain_access(access, device, why))
		return;
	if (access & IBV_ACCESS_ON_DEMAND && (err == EINVAL || err == EOPNOTSUPP))
		aw_reason_guess(
			why, err,
			"most likely the device or its kernel driver has no on-demand paging (IBV_ACCESS_ON_DEMAND; ibv_devinfo -v: general_odp_caps)");
	else if (err == EFAULT)
		aw_reason_guess(
			why, err,
			"most likely not all of the %zu bytes from %p are mapped here%s; or it is memory of a GPU, which needs nvidia-peermem, ibv_reg_dmabuf_mr or the like, or a device's memory (mmap of /dev)",
			length, addr,
			writes ? ", or they are mapped read-only, and the access asks for writes"
			       : "");
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely %zu bytes are more than the process may lock (ulimit -l); or the device has max_mr MRs already, or memory is used up",
			length);
	else if (err == EINVAL && length)
		aw_reason_guess(
			why, err,
			"most likely the address is no memory that the kernel can pin (a GPU's, a device's), or the device does not take access 0x%x",
			access);
	else
		aw_explain_errno("ibv_reg_mr", err, why);
}

void aw_explain_memlock(uint64_t limit, int err, char why[AW_EXPLAIN_MAX])
{
	if (err == ENOMEM && limit != UINT64_MAX)
		aw_reason_add(why, "; RLIMIT_MEMLOCK is %llu bytes", (unsigned long long)limit);
}

static bool explain_window(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info,
			   unsigned mr_access, char why[AW_EXPLAIN_MAX])
{
	const struct ibv_mr *mr = info->mr;
	unsigned unknown = info->mw_access_flags & ~(unsigned)WINDOW_ACCESS;

	if (mw->type != IBV_MW_TYPE_1)
		aw_reason_set(
			why,
			"the window is of type 2, which IBV_WR_BIND_MW binds, posted by ibv_post_send");
	else if (!mr && (info->addr || info->length))
		aw_reason_set(why, "%llu bytes without an MR; to unbind, addr and length are 0",
			      (unsigned long long)info->length);
	else if (mr && mr->pd != mw->pd)
		aw_reason_set(why, "the window and the MR of lkey 0x%x are of different PDs",
			      mr->lkey);
	else if (mr && mr_access != UINT_MAX && !(mr_access & IBV_ACCESS_MW_BIND))
		aw_reason_set(
			why,
			"the MR of lkey 0x%x was registered with access 0x%x, without IBV_ACCESS_MW_BIND",
			mr->lkey, mr_access);
	else if (mr && mr_access != UINT_MAX && info->mw_access_flags & REMOTE_WRITES &&
		 !(mr_access & IBV_ACCESS_LOCAL_WRITE))
		aw_reason_set(
			why,
			"a window for remote writes needs an MR with IBV_ACCESS_LOCAL_WRITE; that of lkey 0x%x has access 0x%x",
			mr->lkey, mr_access);
	else if (unknown)
		aw_reason_set(why, "mw_access_flags 0x%x: a window has no flags 0x%x",
			      info->mw_access_flags, unknown);
	else
		return false;
	return true;
}

/* An MR of iova or zero-based addresses has others than mr->addr, so the range is no proof, but likely. */
static bool guess_range(const struct ibv_mw_bind_info *info, int err, char why[AW_EXPLAIN_MAX])
{
	const struct ibv_mr *mr = info->mr;
	uint64_t start = mr ? (uintptr_t)mr->addr : 0;

	if (!mr || (info->addr >= start && info->length <= mr->length &&
		    info->addr - start <= mr->length - info->length))
		return false;
	aw_reason_guess(
		why, err,
		"most likely %llu bytes from 0x%llx are not all in the MR of lkey 0x%x, %zu bytes from 0x%llx",
		(unsigned long long)info->length, (unsigned long long)info->addr, mr->lkey,
		mr->length, (unsigned long long)start);
	return true;
}

void aw_explain_bind_mw(const struct aw_explain_queue *queue, const struct ibv_mw *mw,
			const struct ibv_mw_bind *bind, unsigned mr_access, int err,
			char why[AW_EXPLAIN_MAX])
{
	if (queue->state == IBV_QPS_RESET || queue->state == IBV_QPS_INIT ||
	    queue->state == IBV_QPS_RTR)
		aw_reason_set(why, "the state is %s; a bind is a send and needs RTS",
			      aw_state_name(queue->state));
	else if (explain_window(mw, &bind->bind_info, mr_access, why))
		return;
	else if (queue->cap.max_send_wr && queue->under_way >= queue->cap.max_send_wr)
		aw_reason_set(
			why,
			"the SQ is full: %u of %u work requests have no completion that was polled, %u of them are signaled",
			queue->under_way, queue->cap.max_send_wr, queue->signaled);
	else if (!guess_range(&bind->bind_info, err, why))
		aw_explain_errno("ibv_bind_mw", err, why);
}
