// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event that stands for a stream's error.
#include "core/failure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
	enum aw_qp_state state;
	enum aw_error error, peer_error;
	enum aw_failure failure;
} cases[] = {
	/* an error is an event only once it has ended the stream */
	{ AW_QP_IDLE, AW_OK, AW_OK, AW_FAILURE_NONE },
	{ AW_QP_RTS, AW_E_MPA_CRC, AW_OK, AW_FAILURE_NONE },
	{ AW_QP_CLOSING, AW_E_MPA_CRC, AW_E_MPA_CRC, AW_FAILURE_NONE },
	/* ends that are no failure of a request */
	{ AW_QP_ERROR, AW_OK, AW_OK, AW_FAILURE_NONE },
	{ AW_QP_ERROR, AW_E_MPA_CLOSED, AW_OK, AW_FAILURE_NONE },
	/* the peer's Terminate, whatever this end has found */
	{ AW_QP_ERROR, AW_OK, AW_E_RDMAP_STAG, AW_FAILURE_FATAL },
	{ AW_QP_TERMINATE, AW_E_RDMAP_STAG, AW_E_RDMAP_STAG, AW_FAILURE_FATAL },
	/* RFC 5040 4.8: layers 0 and 1, types 1 and 2 */
	{ AW_QP_TERMINATE, AW_E_RDMAP_STAG, AW_OK, AW_FAILURE_ACCESS },
	{ AW_QP_ERROR, AW_E_RDMAP_STAG, AW_OK, AW_FAILURE_ACCESS },
	{ AW_QP_TERMINATE, AW_E_DDP_TAGGED_STAG, AW_OK, AW_FAILURE_ACCESS },
	{ AW_QP_TERMINATE, AW_E_DDP_TAGGED_VERSION, AW_OK, AW_FAILURE_REQUEST },
	{ AW_QP_TERMINATE, AW_E_DDP_NO_BUFFER, AW_OK, AW_FAILURE_REQUEST },
	{ AW_QP_TERMINATE, AW_E_RDMAP_OPCODE, AW_OK, AW_FAILURE_REQUEST },
	/* type 0, and layer 2 */
	{ AW_QP_TERMINATE, AW_E_LOCAL_CATASTROPHIC, AW_OK, AW_FAILURE_FATAL },
	{ AW_QP_TERMINATE, AW_E_MPA_CRC, AW_OK, AW_FAILURE_FATAL },
};

static void failure_of__table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct aw_qp qp = {
			.state = cases[i].state,
			.error = cases[i].error,
			.peer_error = cases[i].peer_error,
		};

		if (aw_failure_of(&qp) != cases[i].failure)
			fail_msg("case %zu: %d, not %d", i, aw_failure_of(&qp), cases[i].failure);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failure_of__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
