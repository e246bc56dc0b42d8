// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes and reads a file behind its first 4 GiB, whose offsets need 64 bits on every machine: test_ends.py preloads the
// sockets library. Exit status: 0, or 1 when another place was written or read.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define FAR (((off64_t)1 << 32) + 7)

int main(void)
{
	char out = 'f', in = 0;
	struct iovec to = { &out, 1 }, from = { &in, 1 };
	int file = memfd_create("far", MFD_CLOEXEC);

	if (file < 0 || pwritev64v2(file, &to, 1, FAR, 0) != 1 ||
	    lseek64(file, 0, SEEK_END) != FAR + 1 || preadv64v2(file, &from, 1, FAR, 0) != 1 ||
	    in != out) {
		perror("far");
		return 1;
	}
	return 0;
}
