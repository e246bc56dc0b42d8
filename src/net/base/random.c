// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pool lies in a page of its own, which the kernel clears in the child of any fork: the child's pool is empty.
#include "net/base/random.h"

#include "net/base/fork.h"
#include "ring/lock.h"
#include "ring/once.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* All zero is empty. */
struct random_pool {
	size_t left; /* how many of the first are left; the others are wiped */
	uint8_t octets[AW_RANDOM_POOL];
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
/* NULL: the kernel cannot clear it in a child, and gives each number. */
static struct random_pool *pool AW_GUARDED_BY(lock);
static struct aw_once once = AW_ONCE_INIT;

static const struct aw_fork_handlers fork_handlers = { .lock = &lock };

static int make_pool(void)
{
	void *page = mmap(NULL, sizeof(struct random_pool), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	aw_fork_register(AW_FORK_RANDOM, &fork_handlers);
	if (page == MAP_FAILED)
		return 0;
	if (madvise(page, sizeof(struct random_pool), MADV_WIPEONFORK) != 0) {
		munmap(page, sizeof(struct random_pool));
		return 0;
	}
	aw_lock(&lock);
	pool = page;
	aw_unlock(&lock);
	return 0;
}

static int fill(void) AW_REQUIRES(lock)
{
	if (getentropy(pool->octets, sizeof(pool->octets)) != 0)
		return EIO;
	pool->left = sizeof(pool->octets);
	return 0;
}

int aw_random_take(void *octets, size_t len)
{
	int err = aw_once_run(&once, make_pool);

	assert(len <= AW_RANDOM_POOL);
	aw_lock(&lock);
	if (!pool) {
		err = getentropy(octets, len) == 0 ? 0 : EIO;
	} else {
		if (pool->left < len)
			err = fill();
		if (!err) {
			pool->left -= len;
			memcpy(octets, pool->octets + pool->left, len);
			explicit_bzero(pool->octets + pool->left, len);
		}
	}
	aw_unlock(&lock);
	return err;
}
