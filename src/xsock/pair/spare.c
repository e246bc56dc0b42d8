// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that takes the fd leaves the place empty.
#include "xsock/pair/spare.h"

#include <sys/stat.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"

static uint64_t word_of(int fd)
{
	return (uint64_t)getpid() << 32 | (uint32_t)(fd + 1);
}

static uint64_t ino_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

int aw_spare_take(struct aw_spare *spare, struct aw_spare_place *place, int (*open_fd)(void))
{
	uint64_t kept = atomic_exchange(&place->kept, 0);
	int fd = (int)(uint32_t)kept - 1;

	spare->place = place;
	spare->fd = fd;
	spare->ino = atomic_load(&place->ino);
	/* The program may have closed it unseen. */
	if (kept && ino_of(fd) == spare->ino) {
		if (kept == word_of(fd))
			return fd;
		aw_fdtab_forget(fd);
		aw_libc()->close(fd);
	}
	spare->fd = aw_proxy_move_high(open_fd());
	if (spare->fd >= 0)
		aw_fdtab_hide(spare->fd);
	spare->ino = ino_of(spare->fd);
	return spare->fd;
}

void aw_spare_give_back(const struct aw_spare *spare, bool usable)
{
	uint64_t none = 0;

	if (spare->fd < 0)
		return;
	if (usable && !atomic_load(&spare->place->kept)) {
		atomic_store(&spare->place->ino, spare->ino);
		if (atomic_compare_exchange_strong(&spare->place->kept, &none, word_of(spare->fd)))
			return;
	}
	aw_fdtab_forget(spare->fd);
	aw_libc()->close(spare->fd);
}
