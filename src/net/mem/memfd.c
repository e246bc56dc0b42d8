// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/mem/memfd.h"

#include "net/base/io_now.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* Kernels before 6.3 do not know MFD_NOEXEC_SEAL, and are asked once. */
static int create(const char *name)
{
	static _Atomic bool lacks_noexec;
	int fd = -1;

	if (!atomic_load_explicit(&lacks_noexec, memory_order_relaxed)) {
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
		if (fd >= 0 || errno != EINVAL)
			return fd;
		atomic_store_explicit(&lacks_noexec, true, memory_order_relaxed);
	}
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int aw_memfd_make(const char *name, size_t len)
{
	struct rlimit limit;
	int fd, err;

	/* Else ftruncate(2) would raise SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < len) {
		errno = EFBIG;
		return -1;
	}
	fd = create(name);
	if (fd < 0 ||
	    (ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, AW_MEMFD_SEALS) == 0))
		return fd;
	err = errno;
	aw_close_now(fd);
	errno = err;
	return -1;
}

/* The kernel knows the device by itself where no other field is asked for. */
static bool find_device(int fd, struct statx *found)
{
	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, found) == 0;
}

/* All memfds are of one device, which has no other files. */
bool aw_memfd_is_one(int fd)
{
	struct statx own, other;
	int example = create("anywarp-example");
	bool is;

	if (example < 0)
		return false;
	is = find_device(example, &own) && find_device(fd, &other) &&
	     own.stx_dev_major == other.stx_dev_major && own.stx_dev_minor == other.stx_dev_minor;
	aw_close_now(example);
	return is;
}
