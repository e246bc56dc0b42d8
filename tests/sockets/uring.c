// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes a ring by each of liburing's ways and prints the results, 0 or a negative errno.
#include <liburing.h>
#include <stdio.h>

int main(void)
{
	struct io_uring_params params[2] = { 0 };
	struct io_uring ring;
	int by_flags = io_uring_queue_init(4, &ring, 0);

	if (!by_flags)
		io_uring_queue_exit(&ring);
	printf("%d %d\n", by_flags, io_uring_queue_init_params(4, &ring, &params[0]));
	return 0;
}
