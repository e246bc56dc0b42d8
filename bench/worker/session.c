// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/session.h"

#include "worker/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void session_phase(struct session *session, double seconds)
{
	control_send(&session->control, "phase %.9g", seconds);
	control_expect(&session->control, "go", NULL);
}

struct far_end session_phase_done(struct session *session)
{
	char line[CONTROL_LINE_MAX];
	struct far_end end;

	control_expect(&session->control, "done", line);
	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %lf %lf %" SCNu64 " %" SCNu64, &end.moved.in,
		   &end.moved.out, &end.cpu.user, &end.cpu.system, &end.memory.anon,
		   &end.memory.pss) != 6)
		fail("'done %.80s' is not what a server says: are both of one version?", line);
	return end;
}

void session_serve(struct session *session, struct moved (*run)(struct session *, double))
{
	char line[CONTROL_LINE_MAX];
	double seconds;

	for (;;) {
		struct cpu before, used;
		struct memory memory;
		struct moved moved;

		control_receive(&session->control, line);
		if (strcmp(line, "end") == 0)
			return;
		if (sscanf(line, "phase %lf", &seconds) != 1)
			fail("'%.80s' is not what a client says: are both of one version?", line);
		before = cpu_now();
		control_send(&session->control, "go");
		moved = run(session, seconds);
		used = cpu_since(&before);
		memory = memory_now();
		control_send(&session->control,
			     "done %" PRIu64 " %" PRIu64 " %.9g %.9g %" PRIu64 " %" PRIu64,
			     moved.in, moved.out, used.user, used.system, memory.anon, memory.pss);
	}
}

void session_usec(struct json *json, const char *key, const struct stats *stats, double parts)
{
	double ns = NS_PER_USEC * parts;

	json_open(json, key);
	json_real(json, "min", (double)stats->min / ns);
	json_real(json, "median", stats_quantile(stats, 0.5) / ns);
	json_real(json, "mean", stats_mean(stats) / ns);
	json_real(json, "p99", stats_quantile(stats, 0.99) / ns);
	json_real(json, "max", (double)stats->max / ns);
	json_close(json);
}

void session_cpu(struct json *json, const struct cpu *client, const struct cpu *server)
{
	json_open(json, "cpu");
	json_real(json, "client_seconds", client->user + client->system);
	json_real(json, "server_seconds", server->user + server->system);
	json_real(json, "client_user", client->user);
	json_real(json, "client_system", client->system);
	json_real(json, "server_user", server->user);
	json_real(json, "server_system", server->system);
	json_close(json);
}
