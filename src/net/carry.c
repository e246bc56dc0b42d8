// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The child's parts are restored in this order: the progress thread starts last.
#include "net/carry.h"

#include "net/channel.h"
#include "net/cq.h"
#include "net/engine.h"

int aw_carry_take(void)
{
	int err = aw_channel_take_over();

	if (!err)
		err = aw_engine_restart();
	if (err)
		return err;
	aw_cq_rejoin();
	aw_engine_resume();
	return 0;
}
