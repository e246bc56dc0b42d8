// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// deferred PORT: reads what the server echoes, with defer.c loaded. The handlers of two signals, which come to one read of the
// library's, use the connection as well, and have run by the end of the program's call; they
// begin in the order in which the runtime calls them.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 200

static int conn;
static volatile sig_atomic_t first, second, disordered;

static void handle(int sig)
{
	int saved = errno;
	char got;

	if (sig == SIGUSR1)
		first++;
	else
		second++;
	disordered |= sig == SIGUSR2 && second > first;
	(void)recv(conn, &got, 1, MSG_DONTWAIT | MSG_PEEK);
	errno = saved;
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	int *defer_next = dlsym(RTLD_DEFAULT, "defer_next"), deferred = 0;
	char got;

	if (argc != 2 || !defer_next)
		return 2;
	server.sin_port = htons((in_port_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conn = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(conn, (struct sockaddr *)&server, sizeof(server)) ||
	    sigaction(SIGUSR1, &action, NULL) || sigaction(SIGUSR2, &action, NULL))
		return 3;
	for (int i = 0; i < ROUNDS; i++) {
		*defer_next = 1;
		if (write(conn, "x", 1) != 1 || recv(conn, &got, 1, 0) != 1 || got != 'x')
			return 4;
		deferred += !*defer_next;
		if (first != deferred || second != deferred || disordered)
			return 5;
	}
	return deferred == 0;
}
