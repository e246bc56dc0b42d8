// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Locks that know whether they are held: by whom does not matter where threads take turns.
#ifndef KSHIM_SPINLOCK_H
#define KSHIM_SPINLOCK_H

#include <linux/types.h>

typedef struct {
	int held; /* -1: by a writer; else by so many readers */
} rwlock_t;

typedef rwlock_t spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name) \
	{                          \
		0                  \
	}
#define DEFINE_SPINLOCK(name) spinlock_t name

void kshim_lock(rwlock_t *lock, bool writes);
void kshim_unlock(rwlock_t *lock, bool writes);

#define spin_lock_init(lock) ((void)((lock)->held = 0))
#define spin_lock(lock) kshim_lock(lock, true)
#define spin_unlock(lock) kshim_unlock(lock, true)
#define spin_lock_bh(lock) kshim_lock(lock, true)
#define spin_unlock_bh(lock) kshim_unlock(lock, true)
#define spin_lock_irqsave(lock, flags) (kshim_lock(lock, true), (void)((flags) = 0))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), kshim_unlock(lock, true))
#define local_bh_enable() ((void)0)
#define read_lock_bh(lock) kshim_lock(lock, false)
#define read_unlock_bh(lock) kshim_unlock(lock, false)
#define write_lock_bh(lock) kshim_lock(lock, true)
#define write_unlock_bh(lock) kshim_unlock(lock, true)
#define lockdep_assert_held(lock) KSHIM_CHECK((lock)->held < 0)

#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
struct rcu_head {
	int unused;
};

#endif
