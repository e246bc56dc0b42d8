// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that other processes read or share: a memfd whose size is sealed.
#ifndef NET_MEMFD_H
#define NET_MEMFD_H

#include <stdbool.h>
#include <stddef.h>

/* No process can change the size, or add another seal. */
#define AW_MEMFD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * Makes a file of len bytes, which is closed by exec; name is seen under /proc. The caller closes the fd. -1 with errno:
 * EFBIG where RLIMIT_FSIZE is below len, or memfd_create(2)'s, ftruncate(2)'s or fcntl(2)'s.
 */
int aw_memfd_make(const char *name, size_t len);

/*
 * True when fd, which may have been opened with O_PATH, is of a memfd. No file system is asked: that of a stranger's file may be
 * a program (FUSE), which need not answer.
 */
bool aw_memfd_is_one(int fd);

#endif
