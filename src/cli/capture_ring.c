// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The capturer's side of the ring (net/stat/capture_layout.h).
#include "cli/capture.h"

#include "cli/process.h"
#include "net/stat/stat_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(int fd, size_t len, uint64_t at)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(struct capture_ring *ring)
{
	if (ring->request)
		munmap((uint8_t *)ring->request - offsetof(struct aw_stat_head, capture),
		       AW_STAT_HEAD_LEN);
	if (ring->shared)
		munmap(ring->shared, AW_CAPTURE_LEN);
	close(ring->fd);
}

bool aw_capture_attach(pid_t pid, struct capture_ring *ring)
{
	enum aw_stat_result result;
	struct aw_stat_head *head;

	*ring = (struct capture_ring){ .pid = pid };
	result = aw_stat_open(pid, O_RDWR, &ring->fd, &ring->number);
	if (result != AW_STAT_READ)
		return aw_process_report(CAPTURE_WHO, result, pid);
	head = map(ring->fd, AW_STAT_HEAD_LEN, 0);
	ring->request = head ? &head->capture : NULL;
	ring->shared = map(ring->fd, AW_CAPTURE_LEN, AW_STAT_RING_AT);
	if (!ring->request || !ring->shared)
		fprintf(stderr, CAPTURE_WHO ": cannot map the ring of process %d: %s\n", (int)pid,
			strerror(errno));
	else if (flock(ring->fd, LOCK_EX | LOCK_NB) == 0)
		return true; // the kernel drops the lock with the fd, also of a capturer that is killed
	else
		fprintf(stderr, CAPTURE_WHO ": another capture of process %d runs: end it first\n",
			(int)pid);
	unmap(ring);
	return false;
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void aw_capture_begin(struct capture_ring *ring)
{
	uint32_t run = 0;

	// A number that is neither 0 nor that of the last run.
	while (run == 0 || run == load(&ring->shared->run))
		if (getrandom(&run, sizeof(run), GRND_NONBLOCK) != sizeof(run))
			run = (uint32_t)getpid();
	ring->run = run;
	__atomic_store_n(&ring->request->error, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->request->run, ring->run, __ATOMIC_RELEASE);
}

void aw_capture_stop(struct capture_ring *ring)
{
	uint32_t run = ring->run;

	__atomic_compare_exchange_n(&ring->request->run, &run, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void aw_capture_beat(struct capture_ring *ring)
{
	__atomic_fetch_add(&ring->request->beat, 1, __ATOMIC_RELAXED);
}

bool aw_capture_is_wanted(const struct capture_ring *ring)
{
	return load(&ring->request->run) == ring->run;
}

bool aw_capture_is_open(const struct capture_ring *ring)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)ring->pid, ring->number);
	return stat(path, &theirs) == 0 && fstat(ring->fd, &ours) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

uint64_t aw_capture_dropped(const struct capture_ring *ring)
{
	if (load(&ring->shared->run) != ring->run)
		return 0;
	return __atomic_load_n(&ring->shared->dropped, __ATOMIC_RELAXED);
}

// ready: bytes up to the head; room: up to the ring's end.
static bool is_sound(const struct aw_capture_record *record, uint64_t ready, uint64_t room)
{
	if (record->len < AW_CAPTURE_ALIGN || record->len % AW_CAPTURE_ALIGN ||
	    record->len > ready || record->len > room)
		return false;
	if (record->kind == AW_CAPTURE_PAD)
		return true;
	return record->kind == AW_CAPTURE_FPDUS && record->len >= sizeof(*record) &&
	       record->bytes <= record->len - sizeof(*record) &&
	       (record->family == AF_INET || record->family == AF_INET6);
}

enum capture_next aw_capture_next(struct capture_ring *ring, struct aw_capture_record *buf)
{
	if (load(&ring->shared->run) != ring->run)
		return CAPTURE_NOTHING;
	do {
		uint64_t at = ring->tail % AW_CAPTURE_RING_LEN, room = AW_CAPTURE_RING_LEN - at;
		const uint8_t *from = (const uint8_t *)ring->shared + AW_CAPTURE_HEAD_LEN + at;
		/* Pairs with the process's release: the record is whole. */
		uint64_t ready =
			__atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) - ring->tail;

		if (ready == 0)
			return CAPTURE_NOTHING;
		memcpy(buf, from, room < sizeof(*buf) ? room : sizeof(*buf));
		if (ready > AW_CAPTURE_RING_LEN || !is_sound(buf, ready, room))
			return CAPTURE_NONSENSE;
		if (buf->kind == AW_CAPTURE_FPDUS)
			memcpy(buf + 1, from + sizeof(*buf), buf->bytes);
		ring->tail += buf->len;
		/* Pairs with the process's acquire: it may write there again. */
		__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
	} while (buf->kind == AW_CAPTURE_PAD);
	return CAPTURE_RECORD;
}

void aw_capture_end(struct capture_ring *ring)
{
	if (ring->run)
		fallocate(ring->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)AW_STAT_RING_AT, (off_t)AW_CAPTURE_LEN);
	unmap(ring);
}
