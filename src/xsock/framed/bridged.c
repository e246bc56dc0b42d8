// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Beside the byte by which a process holds a slot, the proxy process locks a second one while it bridges the slot.
#include "xsock/framed/bridged.h"

#include "xsock/base/libc.h"

#define KEPT (UINT64_C(1) << 63) /* slot->linger has the program's value */
#define ON (UINT64_C(1) << 32)

static struct flock bridge_lock(unsigned number, short type)
{
	return aw_entry_lock(AW_ARENA_SLOTS + number, type);
}

static uint64_t linger_pack(const struct linger *linger)
{
	return KEPT | (linger->l_onoff ? ON : 0) | (uint32_t)linger->l_linger;
}

static struct linger linger_unpack(uint64_t word)
{
	return (struct linger){ .l_onoff = (word & ON) != 0, .l_linger = (int)(uint32_t)word };
}

void aw_bridged_begin(struct aw_slot *slot, int memory, unsigned number, int tcp)
{
	static const struct linger at_once = { .l_onoff = 1 };
	struct flock lock = bridge_lock(number, F_RDLCK);
	struct linger own = { 0 };
	socklen_t len = sizeof(own);
	uint64_t none = 0;

	if (memory >= 0 && aw_libc()->fcntl(memory, F_OFD_SETLK, &lock) == 0)
		atomic_fetch_or(&slot->bridging, 1);
	(void)aw_libc()->getsockopt(tcp, SOL_SOCKET, SO_LINGER, &own, &len);
	/* A second bridge, or one that was lost, has left the value there. */
	(void)atomic_compare_exchange_strong(&slot->linger, &none, linger_pack(&own));
	(void)aw_libc()->setsockopt(tcp, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void aw_bridged_give_linger(struct aw_slot *slot, int tcp)
{
	uint64_t word = atomic_load(&slot->linger);

	/* Another process may set the value meanwhile. */
	do {
		struct linger own = linger_unpack(word);

		if (!(word & KEPT))
			return;
		(void)aw_libc()->setsockopt(tcp, SOL_SOCKET, SO_LINGER, &own, sizeof(own));
	} while (!atomic_compare_exchange_weak(&slot->linger, &word, 0));
}

void aw_bridged_end(struct aw_slot *slot, int tcp)
{
	if (!atomic_load(&slot->broken))
		aw_bridged_give_linger(slot, tcp);
	if (atomic_load(&slot->bridging) & 1)
		atomic_fetch_add(&slot->bridging, 1);
}

bool aw_bridged_review(struct aw_slot *slot, int memory, unsigned number)
{
	struct flock lock = bridge_lock(number, F_WRLCK);
	uint32_t bridging = atomic_load(&slot->bridging);

	/* An odd count that stays the same over the look is one bridge's. */
	if (!(bridging & 1) || aw_libc()->fcntl(memory, F_OFD_GETLK, &lock) != 0 ||
	    lock.l_type != F_UNLCK || atomic_load(&slot->bridging) != bridging)
		return false;
	atomic_store(&slot->broken, true);
	return true;
}

bool aw_bridged_get_linger(struct aw_slot *slot, struct linger *linger)
{
	uint64_t word = atomic_load(&slot->linger);

	if (word & KEPT)
		*linger = linger_unpack(word);
	return word & KEPT;
}

bool aw_bridged_set_linger(struct aw_slot *slot, const struct linger *linger)
{
	uint64_t word = atomic_load(&slot->linger);

	do {
		if (!(word & KEPT))
			return false;
	} while (!atomic_compare_exchange_weak(&slot->linger, &word, linger_pack(linger)));
	return true;
}
