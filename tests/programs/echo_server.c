// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The service of echo.x on a TCP port of 127.0.0.1, without rpcbind.
#include "echo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_OCTETS (256 * 1024)

/* rpcgen -m made it and declares it nowhere. */
void echo_1(struct svc_req *request, SVCXPRT *transport);

octets *echo_back_1_svc(octets *sent, struct svc_req *request)
{
	static octets answer;

	(void)request;
	free(answer.octets_val);
	answer.octets_len = sent->octets_len;
	answer.octets_val = malloc(sent->octets_len + 1);
	if (answer.octets_val)
		memcpy(answer.octets_val, sent->octets_val, sent->octets_len);
	return answer.octets_val ? &answer : NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in self = { .sin_family = AF_INET };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	self.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&self, sizeof(self)) || listen(fd, 16)) {
		perror("echo_server");
		return 1;
	}
	SVCXPRT *transport = svc_vc_create(fd, BUFFER_OCTETS, BUFFER_OCTETS);

	if (!transport || !svc_register(transport, ECHO, ECHO_ONE, echo_1, 0))
		return 1;
	svc_run();
	return 1;
}
