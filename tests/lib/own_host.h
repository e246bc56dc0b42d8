// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A network namespace for one test, whose settings are its own. The file that includes this defines _GNU_SOURCE.
#ifndef TESTS_LIB_OWN_HOST_H
#define TESTS_LIB_OWN_HOST_H

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* False: this process may not have a network namespace of its own. */
static inline bool enter_own_host(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int any;

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	any = socket(AF_INET, SOCK_DGRAM, 0);
	return any >= 0 && ioctl(any, SIOCSIFFLAGS, &lo) == 0;
}

static inline bool set_sysctl(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	close(fd);
	return done;
}

#endif
