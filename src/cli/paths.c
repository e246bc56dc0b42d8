// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files are those that programs were seen to look for: UCX wants a character device of the name that
// libibverbs told, for which /dev/null does, and pyverbs' tests want to know the network interface. They
// stay when the program ends: another of the same user, in the same network, has the same ones.
#include "cli/paths.h"

#include "cli/launch.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "anywarp0"

static bool directory(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool directory(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return len < (int)sizeof(path) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

static const char *base_path(void)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	return base && *base ? base : "/tmp";
}

bool aw_paths_base(char base[PATH_MAX])
{
	return snprintf(base, PATH_MAX, "%s", base_path()) < PATH_MAX &&
	       access(base, W_OK | X_OK) == 0;
}

/* One for each user and network namespace: interfaces are the namespace's. */
static bool root_make(char root[PATH_MAX])
{
	struct stat net, made;
	int len;

	if (stat("/proc/self/ns/net", &net) != 0)
		net.st_ino = 0;
	len = snprintf(root, PATH_MAX, "%s/anywarp-paths-%u-%llu", base_path(),
		       (unsigned int)geteuid(), (unsigned long long)net.st_ino);
	if (len >= PATH_MAX || !directory("%s", root) || lstat(root, &made) != 0)
		return false;
	/* In /tmp somebody else may have been first. */
	errno = EPERM;
	return S_ISDIR(made.st_mode) && made.st_uid == geteuid() && !(made.st_mode & 022);
}

static bool node_make(const char *root, const char *name)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, name);

	return len < PATH_MAX && (symlink("/dev/null", path) == 0 || errno == EEXIST);
}

/* A program takes the first: loopback is one only where there is no other. */
static bool interfaces_make(const char *root)
{
	struct ifaddrs *all;
	bool done = true, others = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (int pass = 0; pass < 2 && !others; pass++) {
		for (const struct ifaddrs *each = all; each && done; each = each->ifa_next) {
			bool loopback = each->ifa_flags & IFF_LOOPBACK;

			if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET ||
			    !(each->ifa_flags & IFF_UP) || loopback != (pass == 1))
				continue;
			others = true;
			done = directory("%s/sys/class/infiniband/" DEVICE "/device/net/%s", root,
					 each->ifa_name);
		}
	}
	freeifaddrs(all);
	return done;
}

static bool files_make(const char *root)
{
	static const char *const directories[] = {
		"dev",
		"dev/infiniband",
		"sys",
		"sys/class",
		"sys/class/infiniband",
		"sys/class/infiniband/" DEVICE,
		"sys/class/infiniband/" DEVICE "/device",
		"sys/class/infiniband/" DEVICE "/device/net",
	};

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (!directory("%s/%s", root, directories[i]))
			return false;
	return node_make(root, "uverbs_" DEVICE) && node_make(root, "rdma_cm") &&
	       interfaces_make(root);
}

bool aw_paths_export(const char *who, const char *dir)
{
	char root[PATH_MAX];

	if (!root_make(root) || !files_make(root)) {
		fprintf(stderr,
			"%s: cannot make the device's files in %s: %s: set XDG_RUNTIME_DIR to a "
			"directory of yours\n",
			who, root, strerror(errno));
		return false;
	}
	if (setenv("ANYWARP_PATHS", root, 1) == 0)
		return aw_launch_preload(who, dir, CLI_PATHS_LIB);
	fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return false;
}
