// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slot is a word that holds whether the descriptor is open, how many calls hold it, and the
// generation of its process; a look-up is one compare-and-swap on the word. Each possible descriptor
// has a slot, in memory that the kernel provides where a slot is used. No lock.
#include "xsock/rsockets/rs_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "xsock/rsockets/rs_socket.h"

#define SLOTS (1U << 20)

#define OPEN ((uint64_t)1 << 31)
#define HOLDERS (OPEN - 1)
#define GENERATION_SHIFT 32

struct table_slot {
	_Atomic uint64_t word;
	struct aw_rs *rs;
};

static struct table_slot *_Atomic slots; // SLOTS of them, or NULL
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* How often this process and its ancestors have forked since the table was first used. */
static uint32_t generation;

void aw_rs_table_forked(void)
{
	generation++;
}

static void table_init(void)
{
	atomic_store(&slots, calloc(SLOTS, sizeof(struct table_slot)));
}

static struct table_slot *slot_of(int fd)
{
	struct table_slot *first = atomic_load_explicit(&slots, memory_order_acquire);

	return first && fd >= 0 && (unsigned int)fd < SLOTS ? &first[fd] : NULL;
}

static bool is_ours(uint64_t word)
{
	return word >> GENERATION_SHIFT == generation;
}

static int insert_slot(struct aw_rs *rs, int fd)
{
	struct table_slot *slot = slot_of(fd);
	uint64_t word;

	if (!slot)
		return -ENOMEM;
	word = atomic_load(&slot->word);
	if (is_ours(word) && word & (OPEN | HOLDERS))
		return -EBUSY;
	slot->rs = rs;
	// Release; pairs with aw_rs_table_hold.
	atomic_store(&slot->word, (uint64_t)generation << GENERATION_SHIFT | OPEN);
	return fd;
}

int aw_rs_table_insert(struct aw_rs *rs, int fd)
{
	int got, next;

	pthread_once(&once, table_init);
	rs->fd = fd;
	for (got = insert_slot(rs, fd); got == -EBUSY; got = insert_slot(rs, fd)) {
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
	struct table_slot *slot = slot_of(fd);
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

bool aw_rs_table_put(int fd)
{
	struct table_slot *slot = slot_of(fd);
	uint64_t word = atomic_load(&slot->word),
		 last = (uint64_t)generation << GENERATION_SHIFT | 1;

	do {
		if (word == last)
			return false;
	} while (!atomic_compare_exchange_weak(&slot->word, &word, word - 1));
	return true;
}

void aw_rs_table_free(int fd)
{
	atomic_store(&slot_of(fd)->word, (uint64_t)generation << GENERATION_SHIFT);
	close(fd);
}

bool aw_rs_table_close(int fd)
{
	struct table_slot *slot = slot_of(fd);

	return atomic_fetch_and(&slot->word, ~OPEN) & OPEN;
}

bool aw_rs_table_forget(int fd)
{
	struct table_slot *slot = slot_of(fd);
	uint64_t word = slot ? atomic_load(&slot->word) : 0;

	if (!(word & OPEN) || is_ours(word))
		return false;
	aw_rs_table_free(fd);
	return true;
}
