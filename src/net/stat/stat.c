// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the table and hands out its rows. `lock` guards all of it; a thread may hold any other lock when it takes this
// one, and takes none under it. The rows are mapped in stretches, as they are used, since a program may limit its
// address space. After a fork the parent's table is the parent's alone: the child puts memory of its own in the place
// of the mappings, so that rows of inherited objects can still be written and nobody sees it.
#include "net/stat/stat.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/mem/memfd.h"
#include "net/stat/totals.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRETCH 512u /* rows that are mapped together */
#define STRETCHES (AW_STAT_ROWS / STRETCH)
#define STRETCH_LEN ((size_t)STRETCH * AW_STAT_ROW_LEN)
#define WORD_BITS 64u
#define WORDS (AW_STAT_ROWS / WORD_BITS)

_Static_assert(STRETCH_LEN % AW_STAT_HEAD_LEN == 0, "every mapping begins at a page");

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd; /* valid while head is not NULL */
	dev_t dev;
	ino_t ino;
	struct aw_stat_head *head; /* NULL: there is no table */
	union aw_stat_row *stretches[STRETCHES];
	uint64_t used[WORDS]; /* bits of the rows that are taken */
	uint32_t first_free; /* no word of used before this one has a free bit */
	uint32_t count; /* rows taken */
	bool failure_logged;
} table AW_GUARDED_BY(lock);

static struct aw_capture_request no_request;
struct aw_capture_request *aw_stat_capture = &no_request;

static void *map(int fd, void *where, size_t len, off_t at)
{
	void *memory = mmap(where, len, PROT_READ | PROT_WRITE,
			    MAP_SHARED | (where ? MAP_FIXED : 0), fd, at);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool open_table(void) AW_REQUIRES(lock)
{
	int fd = aw_memfd_make(AW_STAT_NAME, AW_STAT_FILE_LEN);
	struct stat file;

	if (fd < 0)
		return false;
	table.head = fstat(fd, &file) == 0 ? map(fd, NULL, AW_STAT_HEAD_LEN, 0) : NULL;
	if (!table.head) {
		close(fd);
		return false;
	}
	table.fd = fd;
	table.dev = file.st_dev;
	table.ino = file.st_ino;
	aw_stat_set64(&table.head->magic, AW_STAT_MAGIC);
	aw_stat_set(&table.head->layout, AW_STAT_LAYOUT);
	aw_stat_set(&table.head->totals, aw_totals_open());
	__atomic_store_n(&aw_stat_capture, &table.head->capture, __ATOMIC_RELAXED);
	return true;
}

/* The program may have closed the fd, whose number may be another file's by now. */
static bool has_file(void) AW_REQUIRES(lock)
{
	struct stat file;

	return fstat(table.fd, &file) == 0 && file.st_dev == table.dev && file.st_ino == table.ino;
}

/* end is called for each mapping of rows. */
static void end_table(void (*end)(void *memory, size_t len)) AW_REQUIRES(lock)
{
	for (size_t i = 0; i < STRETCHES && table.stretches[i]; i++) {
		end(table.stretches[i], STRETCH_LEN);
		table.stretches[i] = NULL;
	}
	__atomic_store_n(&aw_stat_capture, &no_request, __ATOMIC_RELAXED);
	munmap(table.head, AW_STAT_HEAD_LEN);
	table.head = NULL;
	if (has_file())
		close(table.fd);
}

static void unmap(void *memory, size_t len)
{
	munmap(memory, len);
}

/* Stretches are mapped in their order. */
static bool need_stretch(size_t stretch) AW_REQUIRES(lock)
{
	if (!table.stretches[stretch])
		table.stretches[stretch] = map(table.fd, NULL, STRETCH_LEN,
					       (off_t)(AW_STAT_HEAD_LEN + stretch * STRETCH_LEN));
	return table.stretches[stretch];
}

/* The first free row; AW_STAT_ROWS: none. */
static uint32_t find_free(void) AW_REQUIRES(lock)
{
	while (table.first_free < WORDS && table.used[table.first_free] == UINT64_MAX)
		table.first_free++;
	if (table.first_free == WORDS)
		return AW_STAT_ROWS;
	return table.first_free * WORD_BITS +
	       (uint32_t)__builtin_ctzll(~table.used[table.first_free]);
}

static union aw_stat_row *take_row(void) AW_REQUIRES(lock)
{
	uint32_t index = find_free();

	if (index == AW_STAT_ROWS)
		errno = ENOSPC;
	if (index == AW_STAT_ROWS || !need_stretch(index / STRETCH))
		return NULL;
	table.used[index / WORD_BITS] |= UINT64_C(1) << index % WORD_BITS;
	table.count++;
	if (index >= table.head->end)
		aw_stat_set(&table.head->end, index + 1);
	return &table.stretches[index / STRETCH][index % STRETCH];
}

/* A row of the table, which is made if there is none. NULL: errno says why. */
static union aw_stat_row *row_take(void) AW_REQUIRES(lock)
{
	union aw_stat_row *row;
	int err;

	if (!table.head && !open_table())
		return NULL;
	row = take_row();
	if (row)
		return row;
	err = errno;
	aw_stat_add(&table.head->rowless, 1);
	if (table.count == 0)
		end_table(unmap);
	errno = err;
	return NULL;
}

union aw_stat_row *aw_stat_take(enum aw_stat_kind kind, uint32_t number)
{
	union aw_stat_row *row;
	int saved = errno;
	bool logs;

	aw_lock(&lock);
	row = row_take();
	if (row) {
		for (size_t i = 1; i < sizeof(row->words) / sizeof(row->words[0]); i++)
			aw_stat_set64(&row->words[i], 0);
		aw_stat_set(&row->any.number, number);
		__atomic_store_n(&row->any.kind, kind, __ATOMIC_RELEASE);
	}
	logs = !row && !table.failure_logged;
	table.failure_logged |= logs;
	aw_unlock(&lock);
	if (logs)
		aw_log(AW_LOG_DEBUG, "no statistics for 'anywarp stat': %s", strerror(errno));
	errno = saved;
	return row;
}

/* The index of a row of this process's table; AW_STAT_ROWS: it is none of them. */
static uint32_t index_of(const union aw_stat_row *row) AW_REQUIRES(lock)
{
	uintptr_t at = (uintptr_t)row, base;

	for (uint32_t i = 0; i < STRETCHES && table.stretches[i]; i++) {
		base = (uintptr_t)table.stretches[i];
		if (at >= base && at - base < STRETCH_LEN)
			return i * STRETCH + (uint32_t)((at - base) / AW_STAT_ROW_LEN);
	}
	return AW_STAT_ROWS;
}

/* A row that leaves the table leaves its counts to the totals. */
static void retire(union aw_stat_row *row) AW_REQUIRES(lock)
{
	bool counts = row->any.kind == AW_STAT_QP;

	if (counts) {
		aw_totals_begin();
		aw_totals_add(&row->qp.count);
	}
	aw_stat_set(&row->any.kind, AW_STAT_NONE);
	if (counts)
		aw_totals_end();
}

void aw_stat_give(union aw_stat_row *row)
{
	int saved = errno;
	uint32_t index;

	if (!row)
		return;
	aw_lock(&lock);
	index = index_of(row);
	if (index < AW_STAT_ROWS) {
		retire(row);
		table.used[index / WORD_BITS] &= ~(UINT64_C(1) << index % WORD_BITS);
		if (index / WORD_BITS < table.first_free)
			table.first_free = index / WORD_BITS;
		if (--table.count == 0)
			end_table(unmap);
	}
	aw_unlock(&lock);
	errno = saved;
}

/* NULL with errno: there is no memory, or no table. */
static struct aw_capture_ring *map_ring(void) AW_REQUIRES(lock)
{
	if (!table.head || !has_file()) {
		errno = ENOENT;
		return NULL;
	}
	if (fallocate(table.fd, 0, (off_t)AW_STAT_RING_AT, (off_t)AW_CAPTURE_LEN) != 0)
		return NULL;
	return map(table.fd, NULL, AW_CAPTURE_LEN, (off_t)AW_STAT_RING_AT);
}

struct aw_capture_ring *aw_stat_map_ring(void)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct aw_capture_ring *ring;

	aw_lock(&lock);
	ring = map_ring();
	aw_unlock(&lock);
	return ring;
}

void aw_stat_unmap_ring(struct aw_capture_ring *ring)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	munmap(ring, AW_CAPTURE_LEN);
	aw_lock(&lock);
	if (table.head && has_file())
		fallocate(table.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)AW_STAT_RING_AT, (off_t)AW_CAPTURE_LEN);
	aw_unlock(&lock);
}

void aw_stat_count_end(bool crc, bool sent, bool received)
{
	aw_lock(&lock);
	if (table.head) {
		aw_stat_add64(&table.head->crc_errors, crc);
		aw_stat_add64(&table.head->terminates_sent, sent);
		aw_stat_add64(&table.head->terminates_received, received);
	}
	aw_totals_add_end(crc, sent, received);
	aw_unlock(&lock);
}

/*
 * A program ends with its QPs as a rule. This runs behind net/qp/flush.c, which sends what is held. The lock is only tried: exit(3)
 * may be called in a signal handler that has interrupted its thread here.
 */
static __attribute__((destructor(200))) void retire_all(void)
{
	if (aw_trylock(&lock) != 0)
		return;
	for (uint32_t i = 0; table.head && i < table.head->end; i++)
		if (table.used[i / WORD_BITS] & UINT64_C(1) << i % WORD_BITS)
			retire(&table.stretches[i / STRETCH][i % STRETCH]);
	aw_unlock(&lock);
}

void aw_stat_address(const struct sockaddr_storage *from, uint16_t *family, uint16_t *port,
		     uint64_t address[2])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	uint16_t known = AF_UNSPEC, number = 0;
	uint64_t words[2] = { 0, 0 };

	if (from->ss_family == AF_INET) {
		memcpy(words, &in->sin_addr, sizeof(in->sin_addr));
		number = ntohs(in->sin_port);
		known = AF_INET;
	} else if (from->ss_family == AF_INET6) {
		memcpy(words, &in6->sin6_addr, sizeof(in6->sin6_addr));
		number = ntohs(in6->sin6_port);
		known = AF_INET6;
	}
	aw_stat_set64(&address[0], words[0]);
	aw_stat_set64(&address[1], words[1]);
	aw_stat_set16(port, number);
	aw_stat_set16(family, known);
}

/* Memory of this process alone takes the mapping's place. Where there is none, the address must not stay shared. */
static void forget_mapping(void *memory, size_t len)
{
	if (mmap(memory, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		_exit(127);
}

static void fork_child(void) AW_REQUIRES(lock)
{
	int saved = errno;

	if (table.head) {
		end_table(forget_mapping);
		memset(table.used, 0, sizeof(table.used));
		table.first_free = table.count = 0;
	}
	errno = saved;
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_STAT, &fork_handlers);
}
