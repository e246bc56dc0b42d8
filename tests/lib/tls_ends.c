// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tls_ends.h"

#include "tls_files.h"
#include "tls_link.h"
#include "until.h"

#include <sched.h>
#include <stdlib.h>

bool tls_is_asked(void)
{
	return getenv("ANYWARP_TEST_TLS") != NULL;
}

int tls_group_setup(void **state)
{
	return tls_is_asked() ? tls_files_make(state) : 0;
}

int tls_group_teardown(void **state)
{
	return tls_is_asked() ? tls_files_remove(state) : 0;
}

void tls_shake_hands(const int fd[2], struct aw_tls *tls[2])
{
	enum aw_tls_io io[2] = { AW_TLS_MORE, AW_TLS_MORE };

	tls_link_make_ends(fd, 0, NULL, tls);
	repeat_until(io[0] != AW_TLS_MORE && io[1] != AW_TLS_MORE)
	{
		for (int i = 0; i < 2; i++)
			if (io[i] == AW_TLS_MORE)
				io[i] = aw_tls_handshake(tls[i]);
		sched_yield();
	}
	assert_int_equal(io[0], AW_TLS_DONE);
	assert_int_equal(io[1], AW_TLS_DONE);
}
