// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Idle connections: the cost of each in memory, in CPU time, and for a thread that looks for arrivals. A few
// connections are opened and used before, so that what a process needs once is not counted.
#include "worker/fail.h"
#include "worker/session.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 100
#define MESSAGES_A_ROUND 20
#define LOOKS_A_SAMPLE 16
#define IDLE_SAMPLES 2000
#define REST_SECONDS 2
#define SETTLE_NS 200000000

/* The server's work in a phase: take so many connections, or one of these. */
#define PHASE_BUSY (-1.0)
#define PHASE_REST (-2.0)

static struct far_end open_more(struct session *session, uint64_t count)
{
	session_phase(session, (double)count);
	session->transport->connect(session, count);
	return session_phase_done(session);
}

static void time_looks(struct session *session, struct stats *stats)
{
	uint64_t before = clock_ns();

	for (int i = 0; i < LOOKS_A_SAMPLE; i++)
		session->transport->look(session);
	stats_add(stats, clock_ns() - before);
}

/* Looks between rounds of messages on all connections there are. */
static struct far_end be_busy(struct session *session, struct stats *looks)
{
	struct until until = { .deadline_ns = UINT64_MAX, .messages = MESSAGES_A_ROUND };
	struct stats *trips = stats_create();

	session_phase(session, PHASE_BUSY);
	for (int i = 0; i < ROUNDS; i++) {
		session->transport->ask_all(session, &until, trips);
		time_looks(session, looks);
	}
	stats_destroy(trips);
	return session_phase_done(session);
}

static void rest(long ns)
{
	const struct timespec time = { ns / (long)NS_PER_SECOND, ns % (long)NS_PER_SECOND };

	nanosleep(&time, NULL);
}

static struct far_end both_rest(struct session *session)
{
	session_phase(session, PHASE_REST);
	rest(REST_SECONDS * (long)NS_PER_SECOND);
	return session_phase_done(session);
}

static double each(uint64_t after, uint64_t before, uint64_t count)
{
	return ((double)after - (double)before) / (double)count;
}

static double percent(const struct cpu *cpu)
{
	return 100 * (cpu->user + cpu->system) / REST_SECONDS;
}

static void report_memory(struct json *json, uint64_t count, const struct memory near[2],
			  const struct memory far[2])
{
	json_open(json, "octets_per_connection");
	json_real(json, "client", each(near[1].anon, near[0].anon, count));
	json_real(json, "server", each(far[1].anon, far[0].anon, count));
	json_real(json, "client_pss", each(near[1].pss, near[0].pss, count));
	json_real(json, "server_pss", each(far[1].pss, far[0].pss, count));
	json_close(json);
}

/*
 * Ten thousand connections that end in order leave as many local ports in TIME_WAIT for a minute: the runs that
 * follow would find none. So this process's sockets but the control connection's, the verbs library's among them,
 * are reset when the process ends. Client and server both call this function, because either may end first.
 */
static void end_by_reset(const struct session *session)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!fds)
		fail_errno("/proc/self/fd");
	while ((entry = readdir(fds))) {
		int fd = atoi(entry->d_name);

		/* An fd that is no socket refuses the option, and has no port. */
		if (fd != session->control.fd)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	closedir(fds);
}

void idle_client(struct session *session, struct json *json)
{
	uint64_t count = session->args.connections;
	struct stats *busy = stats_create(), *idle = stats_create();
	struct memory near[2], far[2];
	struct far_end resting;
	struct cpu cpu;

	open_more(session, ARGS_IDLE_BUSY);
	far[0] = be_busy(session, busy).memory;
	near[0] = memory_now();
	far[1] = open_more(session, count).memory;
	near[1] = memory_now();
	for (int i = 0; i < IDLE_SAMPLES; i++)
		time_looks(session, idle);
	/* The work that the looks above have caused is over before. */
	rest(SETTLE_NS);
	cpu = cpu_now();
	resting = both_rest(session);
	cpu = cpu_since(&cpu);
	report_memory(json, count, near, far);
	json_real(json, "poll_ns", stats_quantile(idle, 0.5) / LOOKS_A_SAMPLE);
	json_real(json, "poll_ns_busy10", stats_quantile(busy, 0.5) / LOOKS_A_SAMPLE);
	json_open(json, "idle_cpu_percent");
	json_real(json, "client", percent(&cpu));
	json_real(json, "server", percent(&resting.cpu));
	json_close(json);
	session_cpu(json, &cpu, &resting.cpu);
	stats_destroy(busy);
	stats_destroy(idle);
	end_by_reset(session);
}

static struct moved run(struct session *session, double what)
{
	if (what == PHASE_REST)
		rest(REST_SECONDS * (long)NS_PER_SECOND);
	else if (what == PHASE_BUSY)
		for (int i = 0; i < ROUNDS; i++)
			session->transport->answer_all(session);
	else
		session->transport->accept(session, (uint64_t)what);
	return (struct moved){ 0, 0 };
}

void idle_server(struct session *session)
{
	session_serve(session, run);
	end_by_reset(session);
}
