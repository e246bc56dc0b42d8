// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An ONC RPC (RFC 5531) over TCP by libtirpc, which makes and uses the sockets itself: empty, procedure 0 without arguments and
// results, or with SIZE octets that come back. bench-rpc server ADDRESS PORT, bench-rpc client ADDRESS PORT SECONDS [SIZE].
#include "worker/clock.h"
#include "worker/fail.h"
#include "worker/json.h"
#include "worker/stats.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAM 0x20000000 /* the first that users may take (RFC 5531 13.1) */
#define VERSION 1
#define WARM_UP_PARTS 10
#define CALL_SECONDS_MAX 10
#define ECHO 1 /* the procedure that returns what it is given */
#define ECHO_MAX (1u << 20)
#define PATTERN 131
#define BUFFER 0 /* libtirpc's default */

/* Opaque data of variable length (RFC 4506 4.10); the library allocates what it reads. */
struct echo {
	char *octets;
	unsigned int len;
};

static struct sockaddr_in read_address(char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, argv[0], &at.sin_addr) != 1)
		fail("%s: give an IPv4 address", argv[0]);
	at.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	return at;
}

static void delay_nothing(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail_errno("TCP_NODELAY");
}

static bool_t xdr_echo(XDR *xdr, void *echo)
{
	struct echo *of = echo;

	return xdr_bytes(xdr, &of->octets, &of->len, ECHO_MAX);
}

static void answer_echo(SVCXPRT *to)
{
	const xdrproc_t xdr = (xdrproc_t)(void (*)(void))xdr_echo;
	struct echo echo = { 0 };

	if (!svc_getargs(to, xdr, (caddr_t)&echo))
		svcerr_decode(to);
	else if (!svc_sendreply(to, xdr, &echo))
		fail("a reply was not sent: the client is gone");
	svc_freeargs(to, xdr, (caddr_t)&echo);
}

static void answer(struct svc_req *request, SVCXPRT *to)
{
	if (request->rq_proc == ECHO)
		answer_echo(to);
	else if (request->rq_proc != NULLPROC)
		svcerr_noproc(to);
	else if (!svc_sendreply(to, (xdrproc_t)(void (*)(void))xdr_void, NULL))
		fail("a reply was not sent: the client is gone");
}

/* One client is served, to its end. */
static void serve(char **argv)
{
	struct sockaddr_in at = read_address(argv);
	SVCXPRT *transport;
	int on = 1, conn, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 1) != 0)
		fail_errno("cannot listen on %s:%s", argv[0], argv[1]);
	puts("ready");
	fflush(stdout);
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		fail_errno("accept");
	delay_nothing(conn);
	transport = svc_fd_create(conn, BUFFER, BUFFER);
	/* Protocol 0: no port mapper hears of it. */
	if (!transport || !svc_register(transport, PROGRAM, VERSION, answer, 0))
		fail("libtirpc makes no service of the connection");
	while (FD_ISSET(conn, &svc_fdset)) {
		fd_set wanted = svc_fdset;

		if (select(conn + 1, &wanted, NULL, NULL, NULL) > 0)
			svc_getreqset(&wanted);
	}
}

/* The answer has to be what was sent. */
static enum clnt_stat call_once(CLIENT *client, struct echo *sent)
{
	const struct timeval most = { .tv_sec = CALL_SECONDS_MAX };
	const xdrproc_t xdr = (xdrproc_t)(void (*)(void))xdr_echo;
	struct echo got = { 0 };
	enum clnt_stat status;

	if (!sent->len)
		return clnt_call(client, NULLPROC, (xdrproc_t)(void (*)(void))xdr_void, NULL,
				 (xdrproc_t)(void (*)(void))xdr_void, NULL, most);
	status = clnt_call(client, ECHO, xdr, sent, xdr, &got, most);
	if (status == RPC_SUCCESS &&
	    (got.len != sent->len || memcmp(got.octets, sent->octets, sent->len) != 0))
		fail("WRONG OUTPUT: an answer is not what was sent");
	clnt_freeres(client, xdr, (caddr_t)&got);
	return status;
}

static void call_for(CLIENT *client, struct echo *sent, double seconds, struct stats *stats)
{
	uint64_t before = clock_ns(), end = before + (uint64_t)(seconds * NS_PER_SECOND);

	while (before < end) {
		uint64_t now;

		if (call_once(client, sent) != RPC_SUCCESS)
			fail("%s", clnt_sperror(client, "a call"));
		now = clock_ns();
		stats_add(stats, now - before);
		before = now;
	}
}

static void print(const struct stats *stats)
{
	struct json json;

	json_begin(&json);
	json_text(&json, "test", "rpc");
	json_open(&json, "usec");
	json_real(&json, "median", stats_quantile(stats, 0.5) / NS_PER_USEC);
	json_real(&json, "mean", stats_mean(stats) / NS_PER_USEC);
	json_real(&json, "p99", stats_quantile(stats, 0.99) / NS_PER_USEC);
	json_close(&json);
	json_count(&json, "iterations", stats->count);
	json_end(&json);
	if (!json_print(&json, stdout))
		fail_errno("cannot print");
}

static struct echo make_echo(const char *size)
{
	struct echo echo = { .len = size ? (unsigned int)strtoul(size, NULL, 10) : 0 };

	if (echo.len > ECHO_MAX)
		fail("%s: at most %u bytes", size, ECHO_MAX);
	echo.octets = malloc(echo.len + 1);
	if (!echo.octets)
		fail("out of memory");
	for (unsigned int i = 0; i < echo.len; i++)
		echo.octets[i] = (char)(i * PATTERN >> 3);
	return echo;
}

static void call(char **argv)
{
	struct echo sent = make_echo(argv[3]);
	struct sockaddr_in at = read_address(argv);
	double seconds = strtod(argv[2], NULL);
	struct stats *stats = stats_create();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLIENT *client;

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		fail_errno("cannot connect to %s:%s", argv[0], argv[1]);
	delay_nothing(fd);
	client = clnttcp_create(&at, PROGRAM, VERSION, &fd, BUFFER, BUFFER);
	if (!client)
		fail("%s", clnt_spcreateerror("libtirpc makes no client of the connection"));
	call_for(client, &sent, seconds / WARM_UP_PARTS, stats);
	stats_clear(stats);
	call_for(client, &sent, seconds, stats);
	print(stats);
	clnt_destroy(client);
	stats_destroy(stats);
	free(sent.octets);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "server") == 0)
		serve(argv + 2);
	else if ((argc == 5 || argc == 6) && strcmp(argv[1], "client") == 0)
		call(argv + 2);
	else
		return EXIT_USAGE;
	return 0;
}
