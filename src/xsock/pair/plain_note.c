// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table is one file for a process and those that it forks.
#include "xsock/pair/plain_note.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/pair/name.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"

static _Atomic(struct aw_plain_table *) table;
static _Atomic(bool) is_refused; /* there was no memory, or no fd, for the table */

/* Returns the table's fd, out of the program's way; -1: the program may need its numbers, or its limit of files' sizes is lower. */
static int open_file(void)
{
	int fd = memfd_create(AW_PLAIN_NAME, MFD_CLOEXEC), high;
	struct rlimit limit;

	if (fd < 0)
		return -1;
	high = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= sizeof(*table) &&
			       ftruncate(fd, sizeof(struct aw_plain_table)) == 0
		       ? aw_proxy_copy_spare(fd)
		       : -1;
	aw_libc()->close(fd);
	return high;
}

/* Several threads may make one: the first one's stays. */
static void make_table(void)
{
	struct aw_plain_table *first = NULL, *made;
	int fd = open_file();

	made = fd < 0 ? MAP_FAILED
		      : mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made != MAP_FAILED && atomic_compare_exchange_strong(&table, &first, made)) {
		aw_fdtab_hide(fd);
		return;
	}
	is_refused = !first;
	if (made != MAP_FAILED)
		munmap(made, sizeof(*made));
	if (fd >= 0)
		aw_libc()->close(fd);
}

void aw_plain_prepare(void)
{
	int saved = errno;

	if (!table && !is_refused)
		make_table();
	errno = saved;
}

/* Returns whether the socket has no note yet: a program may call connect again for what has begun. */
static bool is_first_note(int fd, enum aw_plain why)
{
	struct aw_plain_table *notes;
	struct stat file;
	uint64_t before;

	aw_plain_prepare();
	notes = table;
	if (!notes || fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode))
		return true;
	before = atomic_exchange(&notes->places[file.st_ino % AW_PLAIN_PLACES],
				 (uint64_t)file.st_ino << 8 | why);
	if (before >> 8 == file.st_ino)
		return false;
	atomic_fetch_add(&notes->counts[why], 1);
	return true;
}

void aw_plain_note(int fd, enum aw_plain why)
{
	const struct aw_plain_words *words = &aw_plain_words[why];
	int saved = errno;

	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child() || is_first_note(fd, why))
		aw_log(AW_LOG_INFO, "fd %d is plain TCP: %s%s%s", fd, words->text,
		       words->remedy ? ": " : "", words->remedy ? words->remedy : "");
	errno = saved;
}

static bool is_within_host(int fd, const struct sockaddr *addr)
{
	struct aw_tcp_end own, server;
	union aw_address local;
	socklen_t len = sizeof(local);

	return aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) == 0 &&
	       aw_pair_end_of((const struct sockaddr *)&local, &own) &&
	       aw_pair_end_of(addr, &server) && aw_pair_is_local(&own, &server);
}

void aw_plain_note_connect(int fd, const struct sockaddr *addr, enum aw_plain why, int result)
{
	int saved = errno;

	if (why && (result == 0 || saved == EINPROGRESS || saved == EINTR))
		aw_plain_note(fd, why == AW_PLAIN_NO_LISTENER && !is_within_host(fd, addr)
					  ? AW_PLAIN_OTHER_HOST
					  : why);
	errno = saved;
}
