// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory, each piece of exactly the size that was asked for; counted, and to fail where a test says so.
#ifndef KSHIM_SLAB_H
#define KSHIM_SLAB_H

#include <linux/types.h>

#define GFP_KERNEL 0u
#define GFP_KERNEL_ACCOUNT 0u
#define GFP_NOIO 0u
#define __GFP_ZERO 0u

void *kshim_alloc(size_t count, size_t size);
void kfree(const void *ptr);

#define kzalloc(size, gfp) ((void)(gfp), kshim_alloc(1, size))
#define kvzalloc(size, gfp) kshim_alloc(1, size)
#define kvcalloc(count, size, gfp) kshim_alloc(count, size)
#define __vmalloc(size, gfp) kshim_alloc(1, size)
#define kvfree(ptr) kfree(ptr)
#define vfree(ptr) kfree(ptr)
#define kfree_rcu(ptr, head) kfree(ptr)

#endif
