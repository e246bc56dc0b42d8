// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Latency: one message there and back at a time.
#include "worker/session.h"

static struct far_end phase(struct session *session, double seconds, uint64_t messages,
			    struct stats *stats)
{
	struct until until = { .messages = messages };

	session_phase(session, seconds);
	until.deadline_ns = messages ? UINT64_MAX
				     : clock_ns() + (uint64_t)(seconds * (double)NS_PER_SECOND);
	session->transport->ping(session, &until, stats);
	return session_phase_done(session);
}

void latency_client(struct session *session, struct json *json)
{
	const struct args *args = &session->args;
	struct stats *stats = stats_create();
	struct far_end far;
	struct cpu cpu;

	session->transport->connect(session, 1);
	phase(session, session_warm_up(session), (args->iterations + 19) / 20, stats);
	stats_clear(stats);
	cpu = cpu_now();
	far = phase(session, args->seconds, args->iterations, stats);
	cpu = cpu_since(&cpu);
	session_usec(json, "usec", stats, args->op == OP_READ || args->op == OP_SEND_DONE ? 1 : 2);
	/* The parameters have what was asked for; this is what was done. */
	json_count(json, "iterations", stats->count);
	session_cpu(json, &cpu, &far.cpu);
	stats_destroy(stats);
}

static struct moved run(struct session *session, double seconds)
{
	(void)seconds;
	session->transport->echo(session);
	return (struct moved){ 0, 0 };
}

void latency_server(struct session *session)
{
	session->transport->accept(session, 1);
	session_serve(session, run);
}
