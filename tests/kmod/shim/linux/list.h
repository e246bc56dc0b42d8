// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lists in a ring, as their users see them.
#ifndef KSHIM_LIST_H
#define KSHIM_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define INIT_LIST_HEAD(head) ((void)((head)->next = (head)->prev = (head)))
#define list_first_entry(head, type, member) container_of((head)->next, type, member)
#define list_for_each_entry(pos, head, member)                               \
	for ((pos) = container_of((head)->next, __typeof__(*(pos)), member); \
	     &(pos)->member != (head);                                       \
	     (pos) = container_of((pos)->member.next, __typeof__(*(pos)), member))

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
	KSHIM_CHECK(entry->prev->next == entry && entry->next->prev == entry);
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	entry->next = entry->prev = NULL;
}

static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}

#endif
