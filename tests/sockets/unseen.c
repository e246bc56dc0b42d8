// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// unseen PORT WAY: a client that loads module.so from its own directory, by its own search path, in the WAY now, deep or apart, and
// passes bytes by the module's calls; afterwards by its own. With apart the module comes while a connection has begun.
// unseen aio: prints what io_setup(2) returns, or errno.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD "hello"
#define WORD_LEN 5

typedef ssize_t read_fn(int fd, void *bytes, size_t len);
typedef ssize_t write_fn(int fd, const void *bytes, size_t len);

static read_fn *module_read;
static write_fn *module_write;

static int connect_to(int port)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };
	int conn = socket(AF_INET, SOCK_STREAM, 0);

	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(conn, (struct sockaddr *)&server, sizeof(server)) == 0 ? conn : -1;
}

static bool echoes(int conn, read_fn *receive, write_fn *transmit)
{
	char got[WORD_LEN];
	ssize_t n, len = 0;

	if (transmit(conn, WORD, WORD_LEN) != WORD_LEN)
		return false;
	while (len < WORD_LEN && (n = receive(conn, got + len, (size_t)(WORD_LEN - len))) > 0)
		len += n;
	return len == WORD_LEN && memcmp(got, WORD, WORD_LEN) == 0;
}

static void load_module(const char *way)
{
	void *module = strcmp(way, "apart") == 0
			       ? dlmopen(LM_ID_NEWLM, "module.so", RTLD_NOW)
			       : dlopen("module.so",
					RTLD_NOW | (strcmp(way, "deep") == 0 ? RTLD_DEEPBIND : 0));

	if (!module) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&module_read = dlsym(module, "module_read");
	*(void **)&module_write = dlsym(module, "module_write");
}

static int try_aio(void)
{
	aio_context_t context = 0;

	printf("%d\n", syscall(SYS_io_setup, 1, &context) == 0 ? 0 : errno);
	return 0;
}

int main(int argc, char **argv)
{
	int before, after, port;

	if (argc == 2)
		return try_aio();
	port = atoi(argv[1]);
	before = connect_to(port);
	if (before < 0 || !echoes(before, read, write))
		return 3;
	load_module(argv[2]);
	after = connect_to(port);
	if (after < 0 || !echoes(before, module_read, module_write) || !echoes(before, read, write))
		return 4;
	return !echoes(after, read, write) || !echoes(after, module_read, module_write);
}
