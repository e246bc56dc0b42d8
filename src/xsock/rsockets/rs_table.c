// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A slot is a word that says whether it is open, how many calls hold it, and of which process it
// is; a look-up is one compare-and-swap on it. Slots are in pages that are made once and stay.
#include "xsock/rsockets/rs_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "xsock/rsockets/rs_socket.h"

#define PAGE_SLOTS 1024U
#define PAGES 1024U

#define OPEN ((uint64_t)1 << 31)
#define HOLDERS (OPEN - 1)
#define GENERATION 32

struct slot {
	_Atomic uint64_t word;
	struct aw_rs *rs;
};

static struct slot *_Atomic pages[PAGES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* How often this process's line of ancestors has forked since the table was first used. */
static uint32_t generation;

static void in_child(void)
{
	generation++;
	aw_rs_process_forked();
}

static void initialise(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static struct slot *slot_of(int fd)
{
	struct slot *page;

	if (fd < 0 || (unsigned int)fd >= PAGES * PAGE_SLOTS)
		return NULL;
	page = atomic_load_explicit(&pages[(unsigned int)fd / PAGE_SLOTS], memory_order_acquire);
	return page ? &page[(unsigned int)fd % PAGE_SLOTS] : NULL;
}

static struct slot *make_slot(int fd)
{
	struct slot *page, *none = NULL;

	if ((unsigned int)fd >= PAGES * PAGE_SLOTS)
		return NULL;
	if (slot_of(fd))
		return slot_of(fd);
	page = calloc(PAGE_SLOTS, sizeof(*page));
	if (!page)
		return NULL;
	// Released here, acquired in slot_of.
	if (!atomic_compare_exchange_strong(&pages[(unsigned int)fd / PAGE_SLOTS], &none, page))
		free(page);
	return slot_of(fd);
}

static bool is_ours(uint64_t word)
{
	return word >> GENERATION == generation;
}

static bool is_taken(uint64_t word)
{
	return is_ours(word) && (word & (OPEN | HOLDERS));
}

static int insert(struct aw_rs *rs, int fd)
{
	struct slot *slot = make_slot(fd);

	if (!slot)
		return -ENOMEM;
	if (is_taken(atomic_load(&slot->word)))
		return -EBUSY;
	slot->rs = rs;
	// Released with what rs holds; acquired in aw_rs_table_hold.
	atomic_store(&slot->word, (uint64_t)generation << GENERATION | OPEN);
	return fd;
}

int aw_rs_table_insert(struct aw_rs *rs, int fd)
{
	int got, next;

	pthread_once(&once, initialise);
	rs->fd = fd;
	for (got = insert(rs, fd); got == -EBUSY; got = insert(rs, fd)) {
		next = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
		if (next < 0) {
			got = -errno;
			break;
		}
		close(fd);
		rs->fd = fd = next;
	}
	if (got < 0) {
		close(fd);
		rs->fd = -1;
	}
	return got;
}

struct aw_rs *aw_rs_table_hold(int fd)
{
	struct slot *slot = slot_of(fd);
	uint64_t word;

	if (!slot)
		return NULL;
	word = atomic_load(&slot->word);
	do {
		if (!is_ours(word) || !(word & OPEN))
			return NULL;
	} while (!atomic_compare_exchange_weak(&slot->word, &word, word + 1));
	return slot->rs;
}

void aw_rs_table_put(int fd)
{
	struct slot *slot = slot_of(fd);
	struct aw_rs *rs = slot->rs;
	uint64_t word = atomic_load(&slot->word), last = (uint64_t)generation << GENERATION | 1;

	// The last one out of a closed slot still holds it until the rsocket is gone.
	do {
		if (word == last)
			break;
	} while (!atomic_compare_exchange_weak(&slot->word, &word, word - 1));
	if (word != last)
		return;
	aw_rs_destroy(rs);
	atomic_store(&slot->word, (uint64_t)generation << GENERATION);
	close(fd);
}

bool aw_rs_table_close(int fd)
{
	struct slot *slot = slot_of(fd);

	return atomic_fetch_and(&slot->word, ~OPEN) & OPEN;
}

bool aw_rs_table_is_parents(int fd)
{
	struct slot *slot = slot_of(fd);
	uint64_t word = slot ? atomic_load(&slot->word) : 0;

	return (word & OPEN) && !is_ours(word);
}

void aw_rs_table_forget(int fd)
{
	struct slot *slot = slot_of(fd);

	atomic_store(&slot->word, (uint64_t)generation << GENERATION);
	close(fd);
}
