// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// vforked connect|accept PORT: a child of vfork(2), which runs in its parent's memory, connects to the port of loopback, or accepts a
// connection of it. The parent prints the errno of that call, or 0 if it has succeeded and passed a word.
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORD "a word in clear"

static bool bind_and_listen(int fd, const struct sockaddr_in *at)
{
	int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 && listen(fd, 1) == 0;
}

/* Returns the child's exit status: an errno, or 0. */
static int use_socket(int fd, bool accepts, const struct sockaddr_in *at)
{
	char got[sizeof(WORD)];

	if (accepts) {
		fd = accept(fd, NULL, NULL);
		return fd < 0 || read(fd, got, sizeof(got)) < 0 ? errno : 0;
	}
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0)
		return errno;
	return write(fd, WORD, strlen(WORD)) < 0 ? errno : 0;
}

int main(int argc, char **argv)
{
	bool accepts = argc == 3 && strcmp(argv[1], "accept") == 0;
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0), status;
	pid_t child;

	if (argc != 3 || fd < 0)
		return 2;
	at.sin_port = htons((in_port_t)atoi(argv[2]));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (accepts && !bind_and_listen(fd, &at)) {
		perror("listen");
		return 1;
	}
	child = vfork();
	if (child == 0)
		_exit(use_socket(fd, accepts, &at));
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 1;
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
