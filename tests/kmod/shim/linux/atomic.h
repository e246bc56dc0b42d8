// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Accesses that another thread may see. The threads of a test take turns: each access is a place for one.
#ifndef KSHIM_ATOMIC_H
#define KSHIM_ATOMIC_H

#include "kshim.h"

#define kshim_load(at)                                                         \
	({                                                                     \
		__typeof__(*(at)) load_ = *(volatile __typeof__(*(at)) *)(at); \
		kshim_read(at, sizeof(load_));                                 \
		kshim_yield(false);                                            \
		load_;                                                         \
	})
#define kshim_store(at, value)                                 \
	do {                                                   \
		*(volatile __typeof__(*(at)) *)(at) = (value); \
		kshim_yield(false);                            \
	} while (0)

#define READ_ONCE(x) kshim_load(&(x))
#define WRITE_ONCE(x, value) kshim_store(&(x), value)
#define smp_load_acquire(at) kshim_load(at)
#define smp_store_release(at, value) kshim_store(at, value)
#define smp_store_mb(x, value) kshim_store(&(x), value)
#define smp_mb() kshim_yield(false)
#define smp_mb__after_atomic() kshim_yield(false)
#define cpu_relax() kshim_yield(true)

#define xchg(at, value)                                                                     \
	({                                                                                  \
		__typeof__(*(at)) xchg_ = __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
		kshim_yield(false);                                                         \
		xchg_;                                                                      \
	})
#define cmpxchg(at, old, value)                                                        \
	({                                                                             \
		__typeof__(*(at)) old_ = (old);                                        \
		kshim_yield(false);                                                    \
		__atomic_compare_exchange_n(at, &old_, value, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                         \
		old_;                                                                  \
	})
#define cmpxchg64(at, old, value) cmpxchg(at, old, value)

typedef struct {
	int counter;
} atomic_t;

static inline bool atomic_add_unless(atomic_t *v, int add, int unless)
{
	kshim_yield(false);
	if (v->counter == unless)
		return false;
	v->counter += add;
	return true;
}

static inline void atomic_dec(atomic_t *v)
{
	kshim_yield(false);
	v->counter--;
}

static inline bool test_bit(unsigned int bit, const unsigned long *word)
{
	kshim_yield(false);
	return __atomic_load_n(word, __ATOMIC_RELAXED) >> bit & 1;
}

static inline bool test_and_set_bit(unsigned int bit, unsigned long *word)
{
	kshim_yield(false);
	return __atomic_fetch_or(word, 1ul << bit, __ATOMIC_SEQ_CST) >> bit & 1;
}

static inline void set_bit(unsigned int bit, unsigned long *word)
{
	test_and_set_bit(bit, word);
}

static inline void clear_bit(unsigned int bit, unsigned long *word)
{
	kshim_yield(false);
	__atomic_fetch_and(word, ~(1ul << bit), __ATOMIC_SEQ_CST);
}

#endif
