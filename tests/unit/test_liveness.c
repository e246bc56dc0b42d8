// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that vanish, and peers that only seem to, on a virtual clock: each case is a row of looks.
#include "core/liveness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S_NS UINT64_C(1000000000)
#define PATIENCE_S 120
#define LOOKS_MAX 8

enum tcp {
	NONE, /* the end of the row */
	STILL, /* nothing is under way */
	QUEUED, /* bytes wait in TCP, and none is on its way: the peer has acknowledged all before */
	SENT, /* bytes are on their way */
	PROBE, /* the window is closed, and a probe has no answer */
	ANSWERED, /* the window is closed, and the last probe was answered */
};

struct look {
	uint32_t at_s;
	enum tcp tcp;
	uint32_t sent_s, heard_s; /* when TCP last sent bytes, and heard from the peer */
	enum aw_liveness_state state;
};

static const struct {
	const char *name;
	struct look looks[LOOKS_MAX];
} cases[] = {
	{ "nothing is under way", { { 8, STILL, 0, 0, AW_LIVENESS_IDLE } } },
	{ "all is acknowledged",
	  { { 8, SENT, 7, 8, AW_LIVENESS_LOOK }, { 16, STILL, 7, 9, AW_LIVENESS_IDLE } } },
	{ "the peer vanishes",
	  { { 8, SENT, 7, 6, AW_LIVENESS_LOOK },
	    { 127, SENT, 100, 6, AW_LIVENESS_LOOK },
	    { 128, SENT, 100, 6, AW_LIVENESS_LOST } } },
	{ "the peer answers late, and then no more",
	  { { 8, SENT, 7, 6, AW_LIVENESS_LOOK },
	    { 120, SENT, 119, 118, AW_LIVENESS_LOOK },
	    { 239, SENT, 200, 118, AW_LIVENESS_LOOK },
	    { 240, SENT, 200, 118, AW_LIVENESS_LOST } } },
	{ "the peer is alive: it has been heard behind what was sent",
	  { { 8, SENT, 7, 8, AW_LIVENESS_LOOK },
	    { 1000, SENT, 7, 999, AW_LIVENESS_LOOK },
	    { 2000, SENT, 7, 999, AW_LIVENESS_LOOK } } },
	{ "a window stays closed, and probes are answered: the peer's program reads nothing",
	  { { 8, ANSWERED, 1, 7, AW_LIVENESS_LOOK },
	    { 130, PROBE, 1, 7, AW_LIVENESS_LOOK },
	    { 240, ANSWERED, 1, 131, AW_LIVENESS_LOOK },
	    { 355, PROBE, 1, 131, AW_LIVENESS_LOOK },
	    { 474, PROBE, 1, 131, AW_LIVENESS_LOOK },
	    { 475, PROBE, 1, 131, AW_LIVENESS_LOST } } },
	{ "bytes that wait owe no answer",
	  { { 8, QUEUED, 1, 7, AW_LIVENESS_LOOK }, { 500, QUEUED, 1, 7, AW_LIVENESS_LOOK } } },
	{ "time counts from the first look, not from the last bytes",
	  { { 500, SENT, 7, 6, AW_LIVENESS_LOOK },
	    { 619, SENT, 7, 6, AW_LIVENESS_LOOK },
	    { 620, SENT, 7, 6, AW_LIVENESS_LOST } } },
};

static void liveness_look__table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct aw_liveness liveness = { 0 };

		for (size_t j = 0; j < LOOKS_MAX && cases[i].looks[j].tcp != NONE; j++) {
			const struct look *look = &cases[i].looks[j];
			const struct aw_tcp_seen seen = {
				.under_way = look->tcp != STILL,
				.unacked = look->tcp == SENT,
				.probing = look->tcp == PROBE,
				.sent_ns = (look->at_s - look->sent_s) * S_NS,
				.heard_ns = (look->at_s - look->heard_s) * S_NS,
			};

			if (aw_liveness_look(&liveness, &seen, PATIENCE_S * S_NS,
					     look->at_s * S_NS) != look->state)
				fail_msg("%s: the look at %u s", cases[i].name, look->at_s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(liveness_look__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
