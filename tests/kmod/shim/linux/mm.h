// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pages. A ring is not rounded up to one: a sanitizer sees the first octet behind its entries.
#ifndef KSHIM_MM_H
#define KSHIM_MM_H

#include <linux/slab.h>

#define PAGE_SHIFT 12
#define PAGE_SIZE (1ul << PAGE_SHIFT)
#define PAGE_ALIGN(size) (size)
#define offset_in_page(addr) ((unsigned long)(addr) & (PAGE_SIZE - 1))

struct page;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
};

/* A page is known by its address. */
#define page_address(page) ((void *)(page))
#define vmalloc_to_page(mem) ((struct page *)(uintptr_t)(mem))
int vm_insert_page(struct vm_area_struct *vma, unsigned long at, struct page *page);

#endif
