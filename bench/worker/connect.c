// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connection set-up: connections one after the other, or some at once, each with one message there
// and back.
#include "worker/session.h"

#define WARM_UP_PART 20

static uint64_t warm_up(const struct args *args)
{
	uint64_t part = (args->count + WARM_UP_PART - 1) / WARM_UP_PART;

	return part > args->at_once ? part : args->at_once;
}

static struct far_end phase(struct session *session, uint64_t count,
			    const struct connect_times *times)
{
	session_phase(session, (double)count);
	session->transport->connect_many(session, count, times);
	return session_phase_done(session);
}

void connect_client(struct session *session, struct json *json)
{
	uint64_t count = session->args.count, began_ns;
	struct connect_times times = { stats_create(), stats_create(), stats_create() };
	struct far_end far;
	double seconds;
	struct cpu cpu;

	phase(session, warm_up(&session->args), &times);
	stats_clear(times.connect);
	stats_clear(times.only);
	stats_clear(times.first_octet);
	cpu = cpu_now();
	began_ns = clock_ns();
	far = phase(session, count, &times);
	seconds = (double)(clock_ns() - began_ns) / (double)NS_PER_SECOND;
	cpu = cpu_since(&cpu);
	json_real(json, "per_second", (double)count / seconds);
	session_usec(json, "usec_connect", times.connect, 1);
	if (session->transport->has_connect_only)
		session_usec(json, "usec_connect_only", times.only, 1);
	session_usec(json, "usec_first_octet", times.first_octet, 1);
	session_cpu(json, &cpu, &far.cpu);
	stats_destroy(times.connect);
	stats_destroy(times.only);
	stats_destroy(times.first_octet);
}

static struct moved run(struct session *session, double count)
{
	session->transport->serve_many(session, (uint64_t)count);
	return (struct moved){ 0, 0 };
}

void connect_server(struct session *session)
{
	session_serve(session, run);
}
