// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/stat_rates.h"

#include "base/clock.h"

#include <stdlib.h>

#define NS 1e9

static int compare(const void *a, const void *b)
{
	const struct stat_counts *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return (left->qp > right->qp) - (left->qp < right->qp);
}

void aw_stat_rates_begin(struct stat_rates *rates)
{
	struct stat_counted last = rates->before;

	rates->before = rates->now;
	if (rates->before.count > 0)
		qsort(rates->before.qps, rates->before.count, sizeof(*rates->before.qps), compare);
	rates->now = last;
	rates->now.count = 0;
	rates->now.ns = aw_now_ns();
}

bool aw_stat_rates_take(struct stat_rates *rates, pid_t pid, const struct aw_stat_qp *qp,
			uint64_t a_second[STAT_RATES])
{
	const struct stat_counts counts = {
		.pid = pid,
		.qp = qp->number,
		.counts = { [STAT_BYTES_OUT] = qp->count.out.bytes,
			    [STAT_BYTES_IN] = qp->count.in.bytes,
			    [STAT_MESSAGES_OUT] = qp->count.out.messages,
			    [STAT_MESSAGES_IN] = qp->count.in.messages },
	};
	double seconds = (double)(rates->now.ns - rates->before.ns) / NS;
	const struct stat_counts *before = NULL;
	struct stat_counted *now = &rates->now;

	if (now->count == now->room) {
		size_t room = now->room ? 2 * now->room : 64;
		struct stat_counts *qps = realloc(now->qps, room * sizeof(*qps));

		if (qps) {
			now->qps = qps;
			now->room = room;
		}
	}
	// Without memory the rates of the next look are not known.
	if (now->count < now->room)
		now->qps[now->count++] = counts;

	if (rates->before.count > 0 && seconds > 0)
		before = bsearch(&counts, rates->before.qps, rates->before.count, sizeof(counts),
				 compare);
	for (int i = 0; before && i < STAT_RATES; i++) {
		/* Another QP has the number. */
		if (counts.counts[i] < before->counts[i])
			return false;
		a_second[i] =
			(uint64_t)((double)(counts.counts[i] - before->counts[i]) / seconds + 0.5);
	}
	return before;
}

void aw_stat_rates_fini(struct stat_rates *rates)
{
	free(rates->before.qps);
	free(rates->now.qps);
	*rates = (struct stat_rates){ 0 };
}
