// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A measuring program: server ADDRESS PORT, or client ADDRESS PORT TEST key=value ...
// The client prints one JSON object; bench/driver runs the programs and makes sense of them.
#include "worker/fail.h"
#include "worker/session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CLIENT_WAIT_SECONDS 60
#define SESSION_SECONDS 180
#define SESSION_PER_SECOND 4
#define SESSION_CONNECTIONS_PER_SECOND 100
#define FDS_BESIDE 64
#define GREETING "anywarp-bench-1"

typedef void (*client_run)(struct session *session, struct json *json);
typedef void (*server_run)(struct session *session);

static const client_run clients[TEST_COUNT] = { latency_client, bandwidth_client, connect_client,
						hotspot_client, idle_client };
static const server_run servers[TEST_COUNT] = { latency_server, bandwidth_server, connect_server,
						hotspot_server, idle_server };

static void usage(const char *why) __attribute__((noreturn));

static void usage(const char *why)
{
	fprintf(stderr,
		"%s: %s\n"
		"usage: %s server ADDRESS PORT\n"
		"       %s client ADDRESS PORT latency|bandwidth|connect|hotspot|idle [key=value]...\n",
		program_invocation_short_name, why, program_invocation_short_name,
		program_invocation_short_name);
	exit(EXIT_USAGE);
}

/* A session that hangs ends with an error, after far more time than it should take. */
static void watch(const struct args *args)
{
	double seconds = SESSION_SECONDS + SESSION_PER_SECOND * args->seconds +
			 (double)args_connections(args) / SESSION_CONNECTIONS_PER_SECOND;

	fail_after((unsigned int)seconds,
		   "the session does not end: one end hangs; run it again under a debugger");
}

/* As many fds as the hard limit allows; an error where they do not reach. */
static void raise_fd_limit(const struct args *args)
{
	uint64_t wanted = FDS_BESIDE;
	struct rlimit limit;

	wanted += args->test == TEST_CONNECT ? 2 * args->at_once : args_connections(args);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail_errno("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail_errno("setrlimit");
	if (limit.rlim_max < wanted)
		fail("%" PRIu64 " file descriptors are needed and %ju allowed: raise the hard "
		     "limit (ulimit -Hn), or ask for fewer connections",
		     wanted, (uintmax_t)limit.rlim_max);
}

static void serve(struct session *session)
{
	char line[CONTROL_LINE_MAX], why[ARGS_TEXT_MAX];
	struct sockaddr_storage at = session->at;
	int listener = control_listen(&at, 1);

	fail_after(CLIENT_WAIT_SECONDS, "no client came: start one");
	if (puts("ready") < 0 || fflush(stdout) != 0)
		fail_errno("cannot print");
	control_accept(&session->control, listener);
	close(listener);
	control_expect(&session->control, GREETING, line);
	if (!args_read_line(&session->args, &session->transport->rules, line, why))
		fail("%s", why);
	watch(&session->args);
	raise_fd_limit(&session->args);
	control_set_port(&session->at, 0);
	session->transport->listen(session);
	control_send(&session->control, "port %u", control_port(&session->at));
	servers[session->args.test](session);
}

static void measure(struct session *session)
{
	char line[ARGS_TEXT_MAX], port[CONTROL_LINE_MAX];
	struct json json;

	watch(&session->args);
	raise_fd_limit(&session->args);
	control_connect(&session->control, &session->at);
	args_line(&session->args, line);
	control_send(&session->control, GREETING " %s", line);
	control_expect(&session->control, "port", port);
	control_set_port(&session->at, (unsigned int)strtoul(port, NULL, 10));
	json_begin(&json);
	json_text(&json, "transport", session->transport->name);
	args_json(&session->args, &json);
	clients[session->args.test](session, &json);
	json_end(&json);
	control_send(&session->control, "end");
	if (!json_print(&json, stdout))
		fail("cannot print the result");
}

int main(int argc, char **argv)
{
	struct session session = { .transport = &transport };
	char why[ARGS_TEXT_MAX];
	bool client;

	signal(SIGPIPE, SIG_IGN);
	if (argc < 4)
		usage("too few arguments");
	client = strcmp(argv[1], "client") == 0;
	if (!client && strcmp(argv[1], "server") != 0)
		usage("the first argument is server or client");
	if (!control_address(argv[2], argv[3], &session.at))
		usage("ADDRESS PORT are a numeric IPv4 or IPv6 address and a port");
	if (!client && argc > 4)
		usage("a server takes no more arguments: the client tells it the test");
	if (client && !args_read(&session.args, &transport.rules, argc - 4, argv + 4, why))
		usage(why);
	if (client)
		measure(&session);
	else
		serve(&session);
	return 0;
}
