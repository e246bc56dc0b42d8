// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls the service of echo.x: empty calls, then octets of many lengths, each answer compared.
#include "echo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY_CALLS 500
#define LENGTH_MAX 3000000u

static int call_empty(CLIENT *client)
{
	struct timeval patience = { .tv_sec = 20 };

	for (int i = 0; i < EMPTY_CALLS; i++) {
		if (clnt_call(client, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
			      NULL, patience) != RPC_SUCCESS)
			return 0;
	}
	return 1;
}

static int call_echo(CLIENT *client, u_int length)
{
	octets sent = { .octets_len = length, .octets_val = malloc(length + 1) };
	octets *got;
	int same;

	for (u_int i = 0; i < length; i++)
		sent.octets_val[i] = (char)((i * 2654435761u) >> 24);
	got = echo_back_1(&sent, client);
	same = got && got->octets_len == length &&
	       !memcmp(got->octets_val, sent.octets_val, length);
	if (got)
		clnt_freeres(client, (xdrproc_t)xdr_octets, (char *)got);
	free(sent.octets_val);
	return same;
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	struct timeval patience = { .tv_sec = 20 };
	int fd = RPC_ANYSOCK;

	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0);
	CLIENT *client = clnttcp_create(&server, ECHO, ECHO_ONE, &fd, 0, 0);

	if (!client) {
		clnt_pcreateerror("echo_client");
		return 1;
	}
	clnt_control(client, CLSET_TIMEOUT, (char *)&patience);
	if (!call_empty(client)) {
		clnt_perror(client, "empty call");
		return 1;
	}
	for (u_int length = 0; length <= LENGTH_MAX; length = length * 3 + 1) {
		if (!call_echo(client, length)) {
			clnt_perror(client, "echo");
			return 1;
		}
	}
	clnt_destroy(client);
	puts("every answer is right");
	return 0;
}
