// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sockets program with one-sided writes: the client puts a text into the server's memory, and then
// says so in the ordinary way. onesided PORT serves one client, onesided PORT HOST TEXT is one.
#include <anywarp/sockets.h>
#include <err.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static char page[4096];

static int connection(const char *host, const char *port) // plain TCP, as in any program
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM }, *found;
	int off = IWARP_OFF, on = 1, fd;

	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -1;
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	setsockopt(fd, SOL_IWARP, IWARP_MODE, &off, sizeof(off)); // iwarp_start starts it
	if (host)
		return connect(fd, found->ai_addr, found->ai_addrlen) ? -1 : fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1) ? -1 : accept(fd, 0, 0);
}

static int serve(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, page, sizeof(page), IWARP_REMOTE_WRITE);
	struct iwarp_key key;
	char note;

	return mr && iwarp_mr_key(mr, &key) == 0 && write(fd, &key, sizeof(key)) > 0 &&
	       read(fd, &note, 1) == 1 && printf("the client wrote: %s\n", page) > 0;
}

static int ask(int fd, const char *text)
{
	struct pollfd completions = { .fd = iwarp_cq_fd(fd), .events = POLLIN };
	struct iwarp_mr *mr = iwarp_reg_mr(fd, page, sizeof(page), 0);
	struct iwarp_completion done;
	struct iwarp_key key;
	int len = snprintf(page, sizeof(page), "%s", text);

	return mr && recv(fd, &key, sizeof(key), MSG_WAITALL) == sizeof(key) &&
	       iwarp_write_notify(mr, 0, (size_t)len + 1, &key, 0, &(struct iwarp_note){ "", 1, 1 }) == 0 &&
	       poll(&completions, 1, -1) == 1 && iwarp_cq_poll(fd, &done, 1) == 1 && !done.error;
}

int main(int argc, char **argv)
{
	int client = argc > 3, fd = connection(client ? argv[2] : NULL, argv[1]);

	if (fd < 0 || iwarp_start(fd, client ? IWARP_ACTIVE : IWARP_PASSIVE) != 0)
		err(1, "no connection");
	return client ? !ask(fd, argv[3]) : !serve(fd);
}
