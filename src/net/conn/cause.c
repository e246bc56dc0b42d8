// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/conn/cause.h"

#include "net/base/policy.h"
#include "net/tls/cause.h"

#include <stdio.h>

static void print_no_rtr(const struct aw_conn *c, char cause[AW_CONN_CAUSE_MAX])
	AW_REQUIRES(c->lock)
{
	char own[AW_POLICY_RTR_MAX], peer[AW_POLICY_RTR_MAX];

	aw_policy_print_rtr(c->local.rtr, own);
	aw_policy_print_rtr(c->info.result.peer_rtr, peer);
	snprintf(cause, AW_CONN_CAUSE_MAX,
		 "no ready-to-receive message in common: this end sends %s, the peer takes %s: "
		 "give both ends one in common by rtr= in --mpa (" AW_POLICY_ENV
		 "), or leave rtr out at both",
		 own, peer);
}

void aw_conn_print_cause(const struct aw_conn *c, enum aw_setup setup,
			 const struct mpa_frame *frame, char cause[AW_CONN_CAUSE_MAX])
{
	switch (setup) {
	case AW_SETUP_REVISION:
		snprintf(cause, AW_CONN_CAUSE_MAX, "mpa revision %u not supported, only 1 to %u%s",
			 frame->revision, c->local.revision,
			 frame->revision == 2 ? ": leave revision=1 out of " AW_POLICY_ENV : "");
		break;
	case AW_SETUP_WRONG_KIND:
		snprintf(
			cause, AW_CONN_CAUSE_MAX, "%s",
			frame->kind == MPA_REQUEST
				? "a request where a reply is due: both ends are initiators: one of "
				  "the two programs has to listen"
				: "a reply where a request is due");
		break;
	case AW_SETUP_NO_RTR:
		print_no_rtr(c, cause);
		break;
	case AW_SETUP_IRD:
		snprintf(cause, AW_CONN_CAUSE_MAX,
			 "the peer wants %u inbound reads, and this end takes %u: raise "
			 "responder_resources here, lower initiator_depth there, or leave them "
			 "to the programs by ird_ord=ulp in --mpa (" AW_POLICY_ENV ") here",
			 c->info.result.peer_ord, c->local.ird);
		break;
	case AW_SETUP_SHORT_PD:
	case AW_SETUP_OK:
		snprintf(cause, AW_CONN_CAUSE_MAX, "%s", aw_setup_text(setup));
		break;
	}
}

const char *aw_conn_strange_cause(const struct aw_conn *c, bool stranger)
{
	uint8_t first = c->in.octets[0];

	if (first == AW_TLS_RECORD_ALERT || first == AW_TLS_RECORD_HANDSHAKE)
		return "the peer speaks tls, and this end does not: run this program with --tls "
		       "require, or the peer's without";
	if (stranger)
		return "the peer does not speak mpa";
	return "the peer does not speak mpa: is its program an rdma one, and run by anywarp, or "
	       "over another iwarp?";
}
