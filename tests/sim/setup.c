// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Start-up over the same pipes: a Request, a Reply, private data both ways, and what both ends
// then hold to be agreed.
#include "world.h"

#include <string.h>

static uint16_t draw_depth(struct rng *rng)
{
	if (rng_percent(rng, 10))
		return MPA_IRD_ORD_NONE;
	return (uint16_t)rng_range(rng, rng_percent(rng, 10) ? 0 : 1, RD_MAX_SIM);
}

static void send(struct end *end, size_t len, enum phase phase)
{
	end->frame_len = len;
	end->frame_off = 0;
	end->phase = phase;
}

void setup_init(struct end *end)
{
	enum surgery surgery = end->conn->surgery;
	struct rng *rng = &end->world->rng;

	end->local = (struct aw_mpa_local){
		.revision = (uint8_t)rng_range(rng, rng_percent(rng, 20) ? 1 : 2, 2),
		/* A surgery needs a stream on which it can be done. */
		.markers = surgery ? surgery == SURGERY_MARKER : rng_percent(rng, 25),
		.crc = rng_percent(rng, 75) || surgery == SURGERY_CRC,
		.rtr = (uint8_t)(rng_percent(rng, 70) ? 7 : rng_range(rng, 1, 7)),
		.ird = draw_depth(rng),
		.ord = draw_depth(rng),
	};
	end->local.extensions = end->world->plan.extended &&
				(rng_percent(rng, 80) || surgery >= SURGERY_FIRST_COUNT);
	if (end->world->plan.extended && !surgery)
		end->local.large_fpdus = (enum aw_large_fpdus)rng_below(rng, 3);
	end->local.placement = end->world->plan.placement && rng_percent(rng, 90);
	end->local.p2p = end->initiator && end->local.revision == 2 && rng_percent(rng, 50);
	end->pd_len = rng_below(rng, sizeof(end->pd));
	rng_fill(rng, end->pd, sizeof(end->pd));
	if (end->initiator)
		send(end, aw_mpa_request(&end->local, end->pd, end->pd_len, end->frame),
		     PHASE_REQUEST);
	else
		end->phase = PHASE_WAIT;
}

/* Without RFC 6581's numbers the programs agree on IRD and ORD elsewhere: here. */
static uint16_t depth(const struct end *end, uint16_t value)
{
	if (!end->result.enhanced || value == MPA_IRD_ORD_NONE ||
	    end->local.ird == MPA_IRD_ORD_NONE || end->local.ord == MPA_IRD_ORD_NONE ||
	    end->peer->local.ird == MPA_IRD_ORD_NONE || end->peer->local.ord == MPA_IRD_ORD_NONE)
		return RD_MAX_SIM / 2;
	return value;
}

static void start(struct end *end)
{
	end->result.ird = depth(end, end->result.ird);
	end->result.ord = depth(end, end->result.ord);
	node_start(end);
}

static void give_up(struct end *end, enum aw_setup setup)
{
	TRACE(end, "start-up ends with %llu", setup);
	end->conn->torn = true;
	node_abort(end, AW_OK);
}

static void on_request(struct end *end, const struct mpa_frame *frame)
{
	enum aw_setup setup = aw_mpa_on_request(&end->local, frame, &end->result);
	struct rng *rng = &end->world->rng;
	bool reject = rng_percent(rng, 3);

	if (setup != AW_SETUP_OK) {
		give_up(end, setup);
		return;
	}
	end->result.ird -= end->result.ird && rng_percent(rng, 10);
	end->result.ord -= end->result.ord && rng_percent(rng, 10);
	send(end, aw_mpa_reply(&end->local, &end->result, reject, end->pd, end->pd_len, end->frame),
	     PHASE_REPLY);
	end->result.rejected = reject;
}

static void on_reply(struct end *end, const struct mpa_frame *frame)
{
	enum aw_setup setup = aw_mpa_on_reply(&end->local, frame, &end->result);

	if (setup == AW_SETUP_OK && !end->result.rejected) {
		start(end);
		check_setup(end->conn);
	} else if (setup == AW_SETUP_NO_RTR || setup == AW_SETUP_IRD) {
		end->conn->torn = true;
		end->result.rtr = MPA_RTR_SEND;
		start(end);
		aw_qp_terminate(&end->qp, setup == AW_SETUP_IRD ? AW_E_MPA_INSUFFICIENT_IRD
								: AW_E_MPA_NO_MATCHING_RTR);
	} else {
		give_up(end, setup);
	}
}

static void check_private_data(struct end *end)
{
	if (end->result.pd_len != end->peer->pd_len ||
	    memcmp(end->result.pd, end->peer->pd, end->peer->pd_len) != 0)
		world_fail(end->world, "%c: private data of %u octets arrived, not %zu", end->name,
			   end->result.pd_len, end->peer->pd_len);
}

void setup_receive(struct end *end)
{
	struct mpa_frame frame;
	size_t used = 0;
	enum mpa_parse parse;

	if (end->phase == PHASE_OVER)
		return;
	parse = mpa_parse(end->stage, end->stage_len, &frame, &used);
	if (parse == MPA_PARSE_MORE)
		return;
	if (parse != MPA_PARSE_OK || end->phase != PHASE_WAIT) {
		world_fail(end->world, "%c: start-up frame: parse %d phase %d", end->name, parse,
			   end->phase);
		return;
	}
	if (used != end->stage_len)
		world_fail(end->world, "%c: %zu octets behind a start-up frame", end->name,
			   end->stage_len - used);
	end->stage_len = 0;
	if (end->initiator)
		on_reply(end, &frame);
	else
		on_request(end, &frame);
	if (end->phase == PHASE_STREAM || end->phase == PHASE_REPLY)
		check_private_data(end);
}

void setup_sent(struct end *end)
{
	if (end->phase == PHASE_REQUEST)
		end->phase = PHASE_WAIT;
	else if (end->result.rejected)
		give_up(end, AW_SETUP_OK);
	else
		start(end);
}
