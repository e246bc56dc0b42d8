// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_MINMAX_H
#define KSHIM_MINMAX_H

#define min_t(type, a, b)                          \
	({                                         \
		type min_a_ = (a), min_b_ = (b);   \
		min_a_ < min_b_ ? min_a_ : min_b_; \
	})
#define max_t(type, a, b)                          \
	({                                         \
		type max_a_ = (a), max_b_ = (b);   \
		max_a_ > max_b_ ? max_a_ : max_b_; \
	})
#define swap(a, b)                       \
	do {                             \
		__typeof__(a) swap_ = a; \
		(a) = (b);               \
		(b) = swap_;             \
	} while (0)
#define min(a, b) min_t(__typeof__(a), a, b)
#define max(a, b) max_t(__typeof__(a), a, b)

#endif
