// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The STags of this process (core/stag.h): the index is a table handle, the key the registration's own.
#include "net/mr/mrtab.h"

#include "base/log.h"
#include "core/stag.h"
#include "net/base/fork.h"
#include "net/base/random.h"
#include "net/mem/fault.h"
#include "net/mem/mapping.h"
#include "net/mr/mw.h"
#include "ring/once.h"
#include "ring/table.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HANDLES_KNOWN 4 /* to a thread */
#define UNUSABLE 1 /* the handle that scrambles to 0 */

static struct aw_table table;
static struct aw_stag_secret secret;
static struct aw_once once = AW_ONCE_INIT;

static void fork_prepare(void) AW_ACQUIRE(table.lock)
{
	aw_table_fork_prepare(&table);
}

static void fork_parent(void) AW_RELEASE(table.lock)
{
	aw_table_fork_parent(&table);
}

static void fork_child(void) AW_RELEASE(table.lock)
{
	aw_table_fork_child(&table);
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

static int init_once(void)
{
	int err;

	if (getentropy(&secret, sizeof(secret)) != 0) {
		aw_log(AW_LOG_ERROR, "no random numbers for stags: %s", strerror(errno));
		return EIO;
	}
	err = aw_table_init(&table, AW_MR_MAX + AW_MW_MAX + UNUSABLE);
	if (err)
		return err;
	aw_fork_register(AW_FORK_REGIONS, &fork_handlers);
	return 0;
}

/* The slots that a thread has looked up last; scrambled is 0, which none has, as they begin. */
static _Thread_local struct known_slot {
	uint32_t scrambled, handle;
	struct aw_table_slot *slot;
} known[HANDLES_KNOWN] __attribute__((tls_model("initial-exec")));

/* NULL for an STag that was never given out. */
static __attribute__((noinline, cold)) const struct known_slot *learn(struct known_slot *at,
								      uint32_t scrambled)
{
	struct known_slot next = { .scrambled = scrambled };

	if (aw_once_run(&once, init_once))
		return NULL;
	next.handle = aw_stag_unscramble(&secret, scrambled);
	next.slot = aw_table_slot_of(&table, next.handle);
	if (!next.slot)
		return NULL;
	*at = next;
	return at;
}

/* Neither the permutation nor a slot's place ever changes, so what a thread has found stays right; no STag scrambles to 0. */
static inline const struct known_slot *look_up(uint32_t stag)
{
	uint32_t scrambled = stag >> AW_STAG_KEY_BITS;
	struct known_slot *at = &known[scrambled % HANDLES_KNOWN];

	return __builtin_expect(at->scrambled == scrambled && scrambled != 0, 1)
		       ? at
		       : learn(at, scrambled);
}

static uint32_t handle_of(uint32_t stag)
{
	return aw_stag_unscramble(&secret, stag >> AW_STAG_KEY_BITS);
}

static int check_memory(const struct aw_mr *mr)
{
	bool write = mr->access & (AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end;

	aw_fault_watch();
	if (mr->null || mr->access & AW_ACCESS_ON_DEMAND)
		return 0;
	/* No address, tagged offset or address of a whole page may wrap. */
	if (mr->len > 0 && (mr->len - 1 > UINT64_MAX - mr->iova || mr->len > UINTPTR_MAX - page ||
			    __builtin_add_overflow((uintptr_t)mr->host, mr->len + page - 1, &end)))
		return EINVAL;
	return aw_mapping_check(mr->host, mr->len, write);
}

int aw_mr_add(struct aw_mr *mr)
{
	int err = check_memory(mr);

	if (!err)
		err = aw_stag_reserve(&mr->stag);
	if (err)
		return err;
	aw_stag_publish(mr);
	return 0;
}

int aw_mr_change(struct aw_mr *mr, const struct aw_mr *want, bool (*may)(struct aw_mr *mr))
{
	uint32_t stag = mr->stag;
	int err = check_memory(want);

	if (err)
		return err;
	if (!may(mr))
		return EBUSY;
	aw_stag_withdraw_wait(stag);
	*mr = *want;
	mr->stag = stag;
	aw_stag_publish(mr);
	return 0;
}

void aw_mr_remove(struct aw_mr *mr)
{
	aw_table_remove_wait(&table, handle_of(mr->stag));
}

static __attribute__((noinline, cold)) void end_slot(uint32_t stag, uint32_t word)
{
	aw_table_put_last(&table, handle_of(stag), word);
}

struct aw_mr *aw_mr_get(uint32_t stag)
{
	const struct known_slot *at = look_up(stag);
	struct aw_mr *mr = at ? aw_table_slot_get(at->slot) : NULL;

	if (__builtin_expect(mr && mr->stag != stag, 0)) {
		uint32_t last = aw_table_slot_put(at->slot);

		if (last)
			end_slot(stag, last);
		return NULL;
	}
	return mr;
}

void aw_mr_put(const struct aw_mr *mr)
{
	uint32_t stag = mr->stag, last;

	last = aw_table_slot_put(look_up(stag)->slot);
	if (last)
		end_slot(stag, last);
}

int aw_stag_reserve(uint32_t *stag)
{
	uint8_t key;
	uint32_t handle;
	int err = aw_once_run(&once, init_once);

	if (err)
		return err;
	if (aw_random_take(&key, sizeof(key)) != 0)
		return EIO;
	handle = aw_table_reserve(&table);
	/* STags 0 and 1 go onto the wire in zero-length operations, so they are never given out. */
	if (handle != AW_TABLE_NONE && aw_stag_scramble(&secret, handle) == 0) {
		uint32_t next = aw_table_reserve(&table);

		aw_table_cancel(&table, handle);
		handle = next;
	}
	if (handle == AW_TABLE_NONE)
		return ENOMEM;
	*stag = aw_stag_scramble(&secret, handle) << AW_STAG_KEY_BITS | key;
	return 0;
}

void aw_stag_cancel(uint32_t stag)
{
	aw_table_cancel(&table, handle_of(stag));
}

int aw_stag_rekey(uint32_t stag, uint32_t *fresh)
{
	uint8_t random;

	if (aw_random_take(&random, sizeof(random)) != 0)
		return EIO;
	/* Adding 1 to AW_STAG_KEY_MASK gives any key but the current one. */
	*fresh = aw_stag_with_key(stag, stag + 1 + random % AW_STAG_KEY_MASK);
	return 0;
}

bool aw_stag_same_index(uint32_t a, uint32_t b)
{
	return a >> AW_STAG_KEY_BITS == b >> AW_STAG_KEY_BITS;
}

uint32_t aw_stag_with_key(uint32_t stag, uint32_t key)
{
	return (stag & ~AW_STAG_KEY_MASK) | (key & AW_STAG_KEY_MASK);
}

void aw_stag_publish(struct aw_mr *mr)
{
	aw_table_publish(&table, handle_of(mr->stag), mr, NULL);
}

void aw_stag_hide(uint32_t stag)
{
	aw_table_hide(&table, handle_of(stag));
}

void aw_stag_withdraw_wait(uint32_t stag)
{
	aw_table_withdraw_wait(&table, handle_of(stag));
}
