// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bandwidth and message rate: as many messages as the time allows, over one or several connections,
// threads or processes. The time ends when the receiving end has told that it has everything.
#include "worker/fail.h"
#include "worker/peers.h"
#include "worker/session.h"

#include <pthread.h>

#define THREADS_MAX 64

struct lane {
	struct session *session;
	unsigned int number;
	unsigned int flow;
	uint64_t deadline_ns;
	struct moved moved;
	pthread_t thread;
};

static unsigned int flow_of(const struct args *args, bool client)
{
	if (args->op == OP_READ)
		return client ? FLOW_ASK : FLOW_ANSWER;
	if (args->direction == DIRECTION_BI)
		return FLOW_OUT | FLOW_IN;
	return client == (args->fan != FAN_OUT) ? FLOW_OUT : FLOW_IN;
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;

	lane->moved = lane->session->transport->flow(lane->session, lane->number, lane->flow,
						     lane->deadline_ns);
	return NULL;
}

/* All lanes of this process, each in a thread, the first in this one. */
static struct moved run_lanes(struct session *session, bool client, double seconds)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)(seconds * (double)NS_PER_SECOND);
	unsigned int count = (unsigned int)session->args.threads;
	struct lane lanes[THREADS_MAX];
	struct moved moved = { 0, 0 };

	for (unsigned int i = 0; i < count; i++) {
		lanes[i] = (struct lane){ .session = session,
					  .number = i,
					  .flow = flow_of(&session->args, client),
					  .deadline_ns = deadline_ns };
		if (i > 0 && pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) != 0)
			fail("no thread number %u: raise the limit (ulimit -u)", i);
	}
	run_lane(&lanes[0]);
	for (unsigned int i = 0; i < count; i++) {
		if (i > 0)
			pthread_join(lanes[i].thread, NULL);
		moved.in += lanes[i].moved.in;
		moved.out += lanes[i].moved.out;
	}
	return moved;
}

static struct moved run_as_client(struct session *session, double seconds)
{
	return run_lanes(session, true, seconds);
}

static struct moved run_as_server(struct session *session, double seconds)
{
	return run_lanes(session, false, seconds);
}

/* Messages that arrived. The receiving end does not count Writes; all that was sent before its last
 * message has arrived when that has. */
static uint64_t arrived(const struct args *args, const struct moved *near, const struct moved *far)
{
	return args->op == OP_WRITE ? near->out + far->out : near->in + far->in;
}

void bandwidth_client(struct session *session, struct json *json)
{
	const struct args *args = &session->args;
	struct peers peers;
	struct peers_result near;
	struct far_end far;
	uint64_t began_ns, messages;
	double seconds, machine;

	peers_start(&peers, session, run_as_client);
	session_phase(session, session_warm_up(session));
	peers_run(&peers, session_warm_up(session));
	session_phase_done(session);
	machine = cpu_machine();
	began_ns = clock_ns();
	session_phase(session, args->seconds);
	near = peers_run(&peers, args->seconds);
	far = session_phase_done(session);
	seconds = (double)(clock_ns() - began_ns) / (double)NS_PER_SECOND;
	machine = cpu_machine() - machine;
	peers_end(&peers);
	messages = arrived(args, &near.moved, &far.moved);
	json_real(json, "octets_per_second", (double)(messages * args->size) / seconds);
	json_real(json, "messages_per_second", (double)messages / seconds);
	json_real(json, "seconds", seconds);
	json_count(json, "octets", messages * args->size);
	json_count(json, "messages", messages);
	session_cpu(json, &near.cpu, &far.cpu);
	json_real(json, "machine_seconds", machine);
}

void bandwidth_server(struct session *session)
{
	session->transport->accept(session, args_connections(&session->args));
	session_serve(session, run_as_server);
}
