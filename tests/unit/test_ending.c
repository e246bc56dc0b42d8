// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a stream on a virtual clock: each case is a script of acts, and what the driver has to do behind each.
#include "core/ending.h"

#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)
#define ACTS_MAX 6

enum what {
	END, /* of the script */
	WAIT,
	CLOSE,
	POST,
	TRANSMIT,
	PEER_FIN,
	TERMINATE,
	ANSWER_DUE, /* a Read of the peer's that is not answered yet, to a QP whose completions are acknowledged */
};

struct act {
	uint32_t at_ms;
	enum what what;
	bool holds; /* the driver has octets that the socket did not take */
	unsigned int steps; /* of aw_ending_follow */
	enum aw_qp_state state; /* behind them */
	uint32_t deadline_ms;
};

static const struct {
	const char *name;
	struct act acts[ACTS_MAX];
} cases[] = {
	{ "a stream that runs has no ending",
	  { { 0, POST, false, 0, AW_QP_RTS, 0 }, { 99999, WAIT, false, 0, AW_QP_RTS, 0 } } },
	{ "a close with nothing posted",
	  { { 5, CLOSE, false, AW_ENDING_BEGUN | AW_ENDING_FIN, AW_QP_CLOSING, 5 + AW_CLOSE_MS },
	    { 6000, WAIT, false, 0, AW_QP_CLOSING, 5 + AW_CLOSE_MS },
	    { 6001, PEER_FIN, false, 0, AW_QP_ERROR, 5 + AW_CLOSE_MS } } },
	{ "a close that the peer does not answer",
	  { { 0, CLOSE, false, AW_ENDING_BEGUN | AW_ENDING_FIN, AW_QP_CLOSING, AW_CLOSE_MS },
	    { AW_CLOSE_MS - 1, WAIT, false, 0, AW_QP_CLOSING, AW_CLOSE_MS },
	    { AW_CLOSE_MS, WAIT, false, 0, AW_QP_ERROR, AW_CLOSE_MS } } },
	{ "the FIN waits for what was posted, and for the driver",
	  { { 0, POST, false, 0, AW_QP_RTS, 0 },
	    { 1, CLOSE, false, AW_ENDING_BEGUN, AW_QP_CLOSING, 1 + AW_CLOSE_MS },
	    { 2, TRANSMIT, true, 0, AW_QP_CLOSING, 1 + AW_CLOSE_MS },
	    { 3, WAIT, false, AW_ENDING_FIN, AW_QP_CLOSING, 1 + AW_CLOSE_MS },
	    { 4, PEER_FIN, false, 0, AW_QP_ERROR, 1 + AW_CLOSE_MS } } },
	{ "a peer that takes nothing cannot delay the flush",
	  { { 0, CLOSE, true, AW_ENDING_BEGUN, AW_QP_CLOSING, AW_CLOSE_MS },
	    { AW_CLOSE_MS, WAIT, true, 0, AW_QP_ERROR, AW_CLOSE_MS } } },
	{ "the peer closes first",
	  { { 0, PEER_FIN, false, AW_ENDING_BEGUN | AW_ENDING_FIN, AW_QP_ERROR, AW_CLOSE_MS } } },
	{ "a Terminate, then the FIN, then nothing",
	  { { 0, TERMINATE, false, AW_ENDING_BEGUN, AW_QP_TERMINATE, AW_TERMINATE_MS },
	    { 9, TRANSMIT, true, 0, AW_QP_TERMINATE, AW_TERMINATE_MS },
	    { 10, WAIT, false, AW_ENDING_FIN, AW_QP_ERROR, AW_TERMINATE_MS } } },
	{ "a Terminate that the socket does not take",
	  { { 0, TERMINATE, true, AW_ENDING_BEGUN, AW_QP_TERMINATE, AW_TERMINATE_MS },
	    { AW_TERMINATE_MS - 1, WAIT, true, 0, AW_QP_TERMINATE, AW_TERMINATE_MS },
	    { AW_TERMINATE_MS, WAIT, true, 0, AW_QP_ERROR, AW_TERMINATE_MS } } },
	{ "a Terminate within a close has the close's time",
	  { { 0, CLOSE, true, AW_ENDING_BEGUN, AW_QP_CLOSING, AW_CLOSE_MS },
	    { 7000, TERMINATE, true, 0, AW_QP_TERMINATE, AW_CLOSE_MS },
	    { AW_CLOSE_MS, WAIT, true, 0, AW_QP_ERROR, AW_CLOSE_MS } } },
	{ "a Terminate that answers keep back has its time once more, without them",
	  { { 0, ANSWER_DUE, false, 0, AW_QP_RTS, 0 },
	    { 1, TERMINATE, false, AW_ENDING_BEGUN, AW_QP_TERMINATE, 1 + AW_TERMINATE_MS },
	    { 2000, WAIT, false, 0, AW_QP_TERMINATE, 2000 + AW_TERMINATE_MS },
	    { 3000, WAIT, false, AW_ENDING_FIN, AW_QP_ERROR, 2000 + AW_TERMINATE_MS } } },
};

static void act_do(struct core_end *end, enum what what)
{
	switch (what) {
	case END:
	case WAIT:
		break;
	case CLOSE:
		aw_qp_close(&end->qp);
		break;
	case POST:
		core_post(end, AW_OP_SEND, 0, 10, 0);
		break;
	case TRANSMIT:
		core_tx(end);
		break;
	case PEER_FIN:
		aw_qp_peer_closed(&end->qp, 0);
		break;
	case TERMINATE:
		aw_qp_terminate(&end->qp, AW_E_LOCAL_CATASTROPHIC);
		break;
	case ANSWER_DUE:
		end->qp.acks = true;
		end->qp.irq_count = 1;
		break;
	}
}

static void ending_follow__table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = core_initiator(1448);
		struct aw_ending ending = { 0 };

		end->qp.rnr_holds = true;
		for (size_t j = 0; j < ACTS_MAX && cases[i].acts[j].what != END; j++) {
			const struct act *act = &cases[i].acts[j];
			unsigned int steps;

			act_do(end, act->what);
			aw_ending_expire(&ending, &end->qp, act->at_ms * MS_NS);
			steps = aw_ending_follow(&ending, &end->qp, !act->holds,
						 act->at_ms * MS_NS);
			if (steps != act->steps || end->qp.state != act->state ||
			    ending.deadline_ns != act->deadline_ms * MS_NS ||
			    end->qp.rnr_holds == ending.begun)
				fail_msg("%s, act %zu: steps %u, state %d, deadline %llu ms",
					 cases[i].name, j, steps, end->qp.state,
					 (unsigned long long)(ending.deadline_ns / MS_NS));
		}
		core_end_destroy(end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ending_follow__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
