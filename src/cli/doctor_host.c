// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks whether connections between two programs of this host may go through shared memory, and
// what that needs.
#define _GNU_SOURCE // memfd_create
#include "cli/doctor.h"

#include "cli/finding.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_PATH_ENV "ANYWARP_HOST_PATH"

// Looks for the fd under /proc, as the peer of a connection would.
static bool is_found(int fd)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	return readlink(path, link, sizeof(link)) > 0;
}

static bool has_memory(void)
{
	int fd = memfd_create("anywarp-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool has = fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
		   is_found(fd);

	if (fd >= 0)
		close(fd);
	return has;
}

void aw_doctor_host(void)
{
	const char *word = getenv(HOST_PATH_ENV);
	bool is_on = word && !strcmp(word, "on");

	if (word && *word && !is_on && strcmp(word, "off") != 0)
		aw_finding_print(FINDING_FAIL, "host path",
				 "set " HOST_PATH_ENV " to on or off, or unset it",
				 HOST_PATH_ENV " is '%s', and so nothing connects", word);
	else if (!has_memory())
		aw_finding_print(is_on ? FINDING_WARN : FINDING_OK, "host path",
				 "allow memfd_create, and /proc",
				 "connections on this host go over TCP: no sealed memory here, or "
				 "it is not to be found under /proc");
	else if (is_on)
		aw_finding_print(FINDING_OK, "host path", NULL,
				 "on, by " HOST_PATH_ENV
				 ": connections between programs of one user go through memory");
	else
		aw_finding_print(FINDING_OK, "host path", NULL,
				 "off: connections on this host go over TCP; through memory: "
				 "anywarp run --host-path on");
}
