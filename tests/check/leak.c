// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each object that a program makes it also destroys.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(pair.context); /* REPORT leak */

	EXPECT(channel);
	if (!wrong)
		EXPECT(ibv_destroy_comp_channel(channel) == 0);
	pair_close(&pair);
	return 0;
}
