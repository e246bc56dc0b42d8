// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// raw [PORT]: reads five bytes of a connection to itself by a system call of its own, which no library sees, and prints them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(what)                                                                    \
	do {                                                                           \
		if (!(what)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

#if defined(__x86_64__)
static long raw_read(int fd, void *to, size_t len)
{
	long done;

	__asm__ volatile("syscall"
			 : "=a"(done)
			 : "0"((long)SYS_read), "D"((long)fd), "S"(to), "d"(len)
			 : "rcx", "r11", "memory");
	return done;
}
#elif defined(__aarch64__)
static long raw_read(int fd, void *to, size_t len)
{
	register long number __asm__("x8") = SYS_read, first __asm__("x0") = fd;
	register void *second __asm__("x1") = to;
	register size_t third __asm__("x2") = len;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third) : "memory");
	return first;
}
#else
static long raw_read(int fd, void *to, size_t len)
{
	(void)fd, (void)to, (void)len;
	puts("unknown machine");
	exit(0);
}
#endif

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    server;
	char got[6] = "";

	CHECK(!bind(listener, (struct sockaddr *)&addr, len) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&addr, &len));
	CHECK(!connect(client, (struct sockaddr *)&addr, len));
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0);
	/* The connection is begun by calls of the C library. */
	CHECK(send(client, "begin", 5, 0) == 5 && recv(server, got, 5, MSG_WAITALL) == 5);
	CHECK(send(client, "hello", 5, 0) == 5);
	CHECK(raw_read(server, got, 5) == 5);
	puts(memcmp(got, "hello", 5) ? "other bytes" : "hello");
	return 0;
}
