// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One session: a client measures one test against a server. The tests are the same for every
// transport; struct transport, one a program, has the calls of a transport for them.
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "worker/args.h"
#include "worker/clock.h"
#include "worker/control.h"
#include "worker/cpu.h"
#include "worker/json.h"
#include "worker/stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The last byte of the last message of a phase; no other message ends so. */
#define LAST_OCTET 0xff

/* A phase ends with the first message that meets either bound. */
struct until {
	uint64_t deadline_ns;
	uint64_t messages; /* 0: no such bound */
};

/* The messages of args.size bytes that one end moved in a phase. */
struct moved {
	uint64_t in, out;
};

/* The work of one thread's connections in a phase of the bandwidth test. */
enum flow {
	FLOW_OUT = 1,
	FLOW_IN = 2,
	FLOW_ASK = 4,
	FLOW_ANSWER = 8
};

/* Of args.at_once connections together: until the last of them is so far, divided by their number. */
struct connect_times {
	struct stats *connect; /* from nothing to a connection */
	struct stats *only; /* the part of it from rdma_connect on; NULL: not for this transport */
	struct stats *first_octet; /* from nothing to the answer to the first message */
};

struct session;

struct transport {
	const char *name;
	struct args_rules rules;

	/* Server: listens at session->at and writes its port there; takes so many connections. */
	void (*listen)(struct session *session);
	void (*accept)(struct session *session, uint64_t count);
	/* Client: makes so many connections to session->at. */
	void (*connect)(struct session *session, uint64_t count);

	/* One message at a time, the last one marked; durations of round trips into stats. */
	void (*ping)(struct session *session, const struct until *until, struct stats *stats);
	void (*echo)(struct session *session);

	/* The connections of one thread; flow is a set of enum flow. */
	struct moved (*flow)(struct session *session, unsigned int lane, unsigned int flow,
			     uint64_t deadline_ns);

	/* Every connection has one request under way; then one last, marked, on the first. */
	void (*ask_all)(struct session *session, const struct until *until, struct stats *stats);
	void (*answer_all)(struct session *session);

	/* Connections, args.at_once together, each with one message of 4 bytes there and back, and its end. */
	void (*connect_many)(struct session *session, uint64_t count,
			     const struct connect_times *times);
	void (*serve_many)(struct session *session, uint64_t count);
	bool has_connect_only;

	/* Looks once for what arrived, where nothing has. */
	void (*look)(struct session *session);
};

struct session {
	const struct transport *transport;
	struct args args;
	struct control control;
	struct sockaddr_storage at;
};

extern const struct transport transport;

static inline bool until_last(const struct until *until, uint64_t done, uint64_t now_ns)
{
	return now_ns >= until->deadline_ns || (until->messages && done + 1 >= until->messages);
}

/* The server's report after a phase. */
struct far_end {
	struct moved moved;
	struct cpu cpu;
	struct memory memory; /* after it */
};

/* Client: tells the server to begin a phase, in the bandwidth test one so long, in others with a number
 * that means something there; the server's report when that is over. */
void session_phase(struct session *session, double seconds);
struct far_end session_phase_done(struct session *session);

/* Server: serves phases by run(session, what the client said) until the client ends the session. */
void session_serve(struct session *session, struct moved (*run)(struct session *, double));

/* Client: "usec" and the like; durations are divided by parts. */
void session_usec(struct json *json, const char *key, const struct stats *stats, double parts);
void session_cpu(struct json *json, const struct cpu *client, const struct cpu *server);

/* The part of the time before it is measured. */
static inline double session_warm_up(const struct session *session)
{
	return session->args.seconds * 0.05;
}

void latency_client(struct session *session, struct json *json);
void latency_server(struct session *session);
void bandwidth_client(struct session *session, struct json *json);
void bandwidth_server(struct session *session);
void connect_client(struct session *session, struct json *json);
void connect_server(struct session *session);
void hotspot_client(struct session *session, struct json *json);
void hotspot_server(struct session *session);
void idle_client(struct session *session, struct json *json);
void idle_server(struct session *session);

#endif
