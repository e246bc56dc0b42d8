// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hot-spot: many connections with a request under way on each, all served by one thread.
#include "worker/session.h"

static struct far_end phase(struct session *session, double seconds, struct stats *stats)
{
	struct until until = { 0 };

	session_phase(session, seconds);
	until.deadline_ns = clock_ns() + (uint64_t)(seconds * (double)NS_PER_SECOND);
	session->transport->ask_all(session, &until, stats);
	return session_phase_done(session);
}

void hotspot_client(struct session *session, struct json *json)
{
	struct stats *stats = stats_create();
	struct far_end far;
	uint64_t began_ns;
	double seconds;
	struct cpu cpu;

	session->transport->connect(session, session->args.clients);
	phase(session, session_warm_up(session), stats);
	stats_clear(stats);
	cpu = cpu_now();
	began_ns = clock_ns();
	far = phase(session, session->args.seconds, stats);
	seconds = (double)(clock_ns() - began_ns) / (double)NS_PER_SECOND;
	cpu = cpu_since(&cpu);
	session_usec(json, "usec", stats, 1);
	json_real(json, "messages_per_second", (double)stats->count / seconds);
	json_real(json, "seconds", seconds);
	json_count(json, "messages", stats->count);
	session_cpu(json, &cpu, &far.cpu);
	stats_destroy(stats);
}

static struct moved run(struct session *session, double seconds)
{
	(void)seconds;
	session->transport->answer_all(session);
	return (struct moved){ 0, 0 };
}

void hotspot_server(struct session *session)
{
	session->transport->accept(session, session->args.clients);
	session_serve(session, run);
}
