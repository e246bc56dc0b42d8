// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's names of types, and what every file there has without asking for it.
#ifndef KSHIM_TYPES_H
#define KSHIM_TYPES_H

#include "kshim.h"

#include_next <linux/types.h>

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

/* As there, without a text. */
#undef static_assert
#define static_assert(claim, ...) _Static_assert(claim, #claim)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned int gfp_t;

#define U8_MAX UINT8_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define __init
#define __exit

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define fallthrough __attribute__((fallthrough))
#define BIT(n) (1ul << (n))
#define WARN_ON_ONCE(claim) KSHIM_CHECK(!(claim))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Errors as pointers: the last page holds no object. */
#define IS_ERR(ptr) ((uintptr_t)(ptr) >= (uintptr_t)-4095)
#define ERR_PTR(err) ((void *)(intptr_t)(err))
#define PTR_ERR(ptr) ((int)(intptr_t)(ptr))
#define ERR_CAST(ptr) ((void *)(ptr))

#define ilog2(n) (63 - __builtin_clzll(n))
#define roundup_pow_of_two(n) ((n) <= 1 ? 1ul : 1ul << (64 - __builtin_clzll((n)-1)))

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/string.h>

#endif
