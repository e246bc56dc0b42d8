// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Latches that are awaited, or are mutexes; and how many locks a thread holds.
#include "ring/lock.h"

#include "base/tsan.h"

#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local volatile uint32_t aw_locks_held __attribute__((tls_model("initial-exec")));

/* The libraries that valgrind loads into a process of these tools. */
static const char *const judges[] = { "vgpreload_helgrind", "vgpreload_drd" };

static int find_judge(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		if (info->dlpi_name && strstr(info->dlpi_name, judges[i]))
			return 1;
	return 0;
}

/* True in a process whose threads a tool judges. It is there from the start, so that the answer stays right. */
static bool is_judged(void)
{
	static _Atomic int known; /* 0: not yet */
	int judged = atomic_load_explicit(&known, memory_order_relaxed);

	if (judged == 0) {
		judged = __tsan_release || dl_iterate_phdr(find_judge, NULL) ? 1 : -1;
		atomic_store_explicit(&known, judged, memory_order_relaxed);
	}
	return judged > 0;
}

void aw_latch_init(struct aw_latch *latch)
{
	bool judged = is_judged();

	pthread_mutex_init(&latch->mutex, NULL);
	atomic_init(&latch->word, judged ? AW_LATCH_MUTEX : AW_LATCH_FREE);
}

void aw_latch_fini(struct aw_latch *latch)
{
	pthread_mutex_destroy(&latch->mutex);
}

/* Returns where the word is not what was seen, or at a wake. errno is the caller's. */
static void word_await(_Atomic uint32_t *word, uint32_t seen)
{
	int before = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	errno = before;
}

static void word_wake(_Atomic uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

void aw_latch_lock_slowly(struct aw_latch *latch)
{
	if (atomic_load_explicit(&latch->word, memory_order_relaxed) == AW_LATCH_MUTEX) {
		pthread_mutex_lock(&latch->mutex);
		return;
	}
	/* A thread that has slept cannot tell whether others still do, so the latch counts as awaited. Acquire: as in aw_latch_go. */
	while (atomic_exchange_explicit(&latch->word, AW_LATCH_AWAITED, memory_order_acquire) !=
	       AW_LATCH_FREE)
		word_await(&latch->word, AW_LATCH_AWAITED);
}

void aw_latch_unlock_slowly(struct aw_latch *latch)
{
	if (atomic_load_explicit(&latch->word, memory_order_relaxed) == AW_LATCH_MUTEX) {
		pthread_mutex_unlock(&latch->mutex);
		return;
	}
	/* Release: as in aw_latch_go. From here on the latch may be gone: only its address is used. */
	atomic_store_explicit(&latch->word, AW_LATCH_FREE, memory_order_release);
	word_wake(&latch->word, 1);
}

int aw_latch_try_mutex(struct aw_latch *latch)
{
	if (atomic_load_explicit(&latch->word, memory_order_relaxed) == AW_LATCH_MUTEX)
		return pthread_mutex_trylock(&latch->mutex);
	return EBUSY;
}

void aw_latch_wait(struct aw_latch_cond *cond, struct aw_latch *latch)
{
	/* Relaxed: the latch orders it. A wake behind this look has changed the word. */
	uint32_t seen = atomic_load_explicit(&cond->wakes, memory_order_relaxed);

	cond->waiters++;
	aw_latch_unlock(latch);
	word_await(&cond->wakes, seen);
	aw_latch_lock(latch);
	cond->waiters--;
}

void aw_latch_wake(struct aw_latch_cond *cond)
{
	if (cond->waiters == 0)
		return;
	atomic_fetch_add_explicit(&cond->wakes, 1, memory_order_relaxed);
	word_wake(&cond->wakes, INT_MAX);
}
