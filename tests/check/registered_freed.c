// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that a connected peer may write is unmapped after its MR has been deregistered, never before.
#include "pair.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	char *window =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(window != MAP_FAILED);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, window, MEMORY,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	EXPECT(mr);
	if (wrong)
		munmap(window, MEMORY); /* REPORT registered-freed */
	EXPECT(ibv_dereg_mr(mr) == 0);
	if (!wrong)
		munmap(window, MEMORY);
	pair_close(&pair);
	return 0;
}
