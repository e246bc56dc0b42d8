// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// struck PORT: reads what the server echoes, while another thread sends two signals as often as it can, whose handlers use the connection as well.
// Built with the thread sanitizer, which calls handlers at places of its own choice. Then works on a word that the handlers work on as
// well: the sanitizer has a lock for it, and its own handler must not run the program's under that lock.
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 2000
#define STORES 200000

static int conn;
static pthread_t main_thread;
static _Atomic(bool) over;
static _Atomic(int) handled;

static void handle(int sig)
{
	int saved = errno;
	char got;

	(void)sig;
	(void)recv(conn, &got, 1, MSG_DONTWAIT | MSG_PEEK);
	atomic_fetch_add(&handled, 1);
	errno = saved;
}

static void *strike(void *unused)
{
	while (!atomic_load(&over)) {
		pthread_kill(main_thread, SIGUSR1);
		pthread_kill(main_thread, SIGUSR2);
	}
	return unused;
}

static bool echo(void)
{
	char got;

	return write(conn, "x", 1) == 1 && recv(conn, &got, 1, 0) == 1 && got == 'x';
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	pthread_t striker;
	int rounds = 0;

	if (argc != 2)
		return 2;
	server.sin_port = htons((in_port_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conn = socket(AF_INET, SOCK_STREAM, 0);
	main_thread = pthread_self();
	if (connect(conn, (struct sockaddr *)&server, sizeof(server)) ||
	    sigaction(SIGUSR1, &action, NULL) || sigaction(SIGUSR2, &action, NULL) ||
	    pthread_create(&striker, NULL, strike, NULL))
		return 3;
	while ((rounds < ROUNDS || !atomic_load(&handled)) && echo())
		rounds++;
	for (int i = 0; i < STORES; i++)
		atomic_fetch_or(&handled, 1);
	atomic_store(&over, true);
	pthread_join(striker, NULL);
	return rounds < ROUNDS;
}
