// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks whether connections between two programs of this host may go through shared memory, and
// what that needs.
#define _GNU_SOURCE // memfd_create
#include "cli/doctor.h"

#include "base/setting.h"
#include "cli/finding.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_PATH_ENV "ANYWARP_HOST_PATH"

static bool has_memory(void)
{
	int fd = memfd_create("anywarp-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool has = fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
	char path[64], link[64];

	// The peer of a connection looks for the fd under /proc.
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	has = has && readlink(path, link, sizeof(link)) > 0;
	if (fd >= 0)
		close(fd);
	return has;
}

// A wrong word is a finding about the environment.
void aw_doctor_host(void)
{
	enum {
		AUTO, /* in the order of the setting's words */
		ON,
		OFF
	};
	unsigned long word = AUTO;

	if (aw_setting_parse(AW_SETTING_HOST_PATH, getenv(HOST_PATH_ENV), &word) ==
	    AW_SETTING_WRONG)
		return;
	if (word == OFF)
		aw_finding_print(FINDING_OK, "host path", NULL,
				 "off, by " HOST_PATH_ENV ": connections on this host go over TCP");
	else if (!has_memory())
		aw_finding_print(FINDING_WARN, "host path",
				 "allow memfd_create, and /proc, or set " HOST_PATH_ENV "=off",
				 "connections on this host go over TCP: no sealed memory here, or "
				 "it is not to be found under /proc");
	else
		aw_finding_print(FINDING_OK, "host path", NULL,
				 "%s: connections between programs of one user go through memory%s",
				 word == AUTO ? "auto" : "on",
				 word == AUTO ? " after some messages" : " at once");
}
