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

void aw_plain_prepare(void)
{
	struct aw_plain_table *first = NULL, *made;
	int saved = errno, file, fd = -1;
	struct rlimit limit;

	if (table || is_refused)
		return;
	/* The table's fd is out of the program's way. There is none where the program may need its numbers, or limits files' sizes below the table's. */
	file = memfd_create(AW_PLAIN_NAME, MFD_CLOEXEC);
	if (file >= 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= sizeof(*table) &&
	    ftruncate(file, sizeof(*made)) == 0)
		fd = aw_proxy_copy_spare(file);
	if (file >= 0)
		aw_libc()->close(file);
	made = fd < 0 ? MAP_FAILED
		      : mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* Several threads may make one: the first one's stays. */
	if (made != MAP_FAILED && atomic_compare_exchange_strong(&table, &first, made)) {
		aw_fdtab_hide(fd);
	} else {
		is_refused = !first;
		if (made != MAP_FAILED)
			munmap(made, sizeof(*made));
		if (fd >= 0)
			aw_libc()->close(fd);
	}
	errno = saved;
}

void aw_plain_note(int fd, enum aw_plain why)
{
	const struct aw_plain_words *words = &aw_plain_words[why];
	struct aw_plain_table *notes = NULL;
	bool is_first = true; /* a program may call connect again for what has begun */
	int saved = errno;
	struct stat file;
	uint64_t before;

	if (!aw_sandbox_is_on() && !aw_fdtab_is_vfork_child()) {
		aw_plain_prepare();
		notes = table;
	}
	if (notes && fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode)) {
		before = atomic_exchange(&notes->places[file.st_ino % AW_PLAIN_PLACES],
					 (uint64_t)file.st_ino << 8 | why);
		is_first = before >> 8 != file.st_ino;
		if (is_first)
			atomic_fetch_add(&notes->counts[why], 1);
	}
	if (is_first)
		aw_log(AW_LOG_INFO, "fd %d is plain TCP: %s%s%s", fd, words->text,
		       words->remedy ? ": " : "", words->remedy ? words->remedy : "");
	errno = saved;
}

void aw_plain_note_connect(int fd, const struct sockaddr *addr, enum aw_plain why, int result)
{
	struct aw_tcp_end own, server;
	union aw_address local;
	socklen_t len = sizeof(local);
	int saved = errno;
	bool is_within_host;

	if (!why || (result != 0 && saved != EINPROGRESS && saved != EINTR))
		return;
	if (why == AW_PLAIN_NO_LISTENER) {
		is_within_host = aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) == 0 &&
				 aw_pair_end_of((const struct sockaddr *)&local, &own) &&
				 aw_pair_end_of(addr, &server) && aw_pair_is_local(&own, &server);
		why = is_within_host ? why : AW_PLAIN_OTHER_HOST;
	}
	aw_plain_note(fd, why);
	errno = saved;
}
