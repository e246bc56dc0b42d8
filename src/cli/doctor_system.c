// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The findings about the machine itself. Sockets stay on loopback; settings are only read.
#define _GNU_SOURCE // unshare
#include "cli/doctor.h"

#include "cli/finding.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_WANTED 1024
#define FD_TEXT "the limit is %llu; a connection takes one, or three through shared memory"
#define TCP_BUFFER_WANTED (1L << 20)
#define BACKLOG_WANTED 128

// Listens on a free port of the address and connects to it. False with errno set.
static bool loopback_connects(struct sockaddr *addr, socklen_t len)
{
	int listener = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), client = -1;
	bool connected;
	int error;

	if (listener < 0)
		return false;
	if (bind(listener, addr, len) == 0 && listen(listener, 1) == 0 &&
	    getsockname(listener, addr, &len) == 0)
		client = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connected = client >= 0 && connect(client, addr, len) == 0;
	error = errno;
	if (client >= 0)
		close(client);
	close(listener);
	errno = error;
	return connected;
}

static void check_loopback(void)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	if (loopback_connects((struct sockaddr *)&v4, sizeof(v4)))
		aw_finding_print(FINDING_OK, "TCP over IPv4", NULL, "127.0.0.1 connects");
	else
		aw_finding_print(FINDING_FAIL, "TCP over IPv4",
				 "bring loopback up (ip link set lo up); check the firewall",
				 "127.0.0.1 does not connect: %s", strerror(errno));
	if (loopback_connects((struct sockaddr *)&v6, sizeof(v6)))
		aw_finding_print(FINDING_OK, "TCP over IPv6", NULL, "::1 connects");
	else
		aw_finding_print(FINDING_WARN, "TCP over IPv6",
				 "use IPv4 addresses, or enable IPv6 on this machine",
				 "::1 does not connect: %s", strerror(errno));
}

// Of a file with several numbers the last counts. harm: what comes of a value below the one that is wanted.
static void check_setting(const char *what, const char *path, long wanted, const char *harm,
			  const char *remedy)
{
	FILE *file = fopen(path, "re");
	long value = -1;

	while (file && fscanf(file, "%ld", &value) == 1)
		continue;
	if (file)
		fclose(file);
	if (value < 0)
		aw_finding_print(FINDING_WARN, what, "mount /proc with its directory sys",
				 "%s cannot be read", path);
	else if (value < wanted)
		aw_finding_print(FINDING_WARN, what, remedy, "%ld; below %ld %s", value, wanted,
				 harm);
	else
		aw_finding_print(FINDING_OK, what, NULL, "%ld", value);
}

void aw_doctor_system(void)
{
	struct rlimit fds;
	pid_t child;
	int status;

	check_loopback();
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0)
		aw_finding_print(fds.rlim_cur < FD_WANTED ? FINDING_WARN : FINDING_OK,
				 "file descriptors",
				 fds.rlim_cur < FD_WANTED ? "raise it: ulimit -n 65536" : NULL,
				 FD_TEXT, (unsigned long long)fds.rlim_cur);
	check_setting("TCP send buffer", "/proc/sys/net/ipv4/tcp_wmem", TCP_BUFFER_WANTED,
		      "throughput suffers", "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'");
	check_setting("TCP recv buffer", "/proc/sys/net/ipv4/tcp_rmem", TCP_BUFFER_WANTED,
		      "throughput suffers", "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'");
	check_setting("listen backlog", "/proc/sys/net/core/somaxconn", BACKLOG_WANTED,
		      "clients that connect at the same time have to try again",
		      "sysctl -w net.core.somaxconn=4096");

	// Root needs no user namespace, which the kernel refuses in a chroot.
	child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0
											       : 1);
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
		aw_finding_print(FINDING_OK, "namespaces", NULL,
				 "network namespaces can be made (only anywarp's own tests do)");
	else
		aw_finding_print(FINDING_WARN, "namespaces", "none needed to run programs",
				 "network namespaces cannot be made; some of anywarp's own tests "
				 "will be skipped");
}
