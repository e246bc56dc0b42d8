// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the files that programs were seen to look for: UCX wants a character device of the name
// that libibverbs told, for which /dev/null does; pyverbs' tests want to know the network
// interface; NCCL and others choose a GID by its type. The files stay when the program ends:
// another of the same user, in the same network namespace and persona, uses the same ones.
#include "cli/paths.h"

#include "cli/launch.h"
#include "cli/paths_gids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#define NET "sys/class/infiniband/" DEVICE "/device/net"
#define PORT "sys/class/infiniband/" DEVICE "/ports/1"

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

/* True when no other user can lead the program elsewhere through this directory. */
static bool is_ours(const struct stat *dir)
{
	return S_ISDIR(dir->st_mode) && dir->st_uid == geteuid() && !(dir->st_mode & 022);
}

/*
 * NULL where the variable is not set or cannot be used: sudo and containers leave another user's.
 */
static const char *runtime_path(void)
{
	const char *path = getenv("XDG_RUNTIME_DIR");
	struct stat dir;

	return path && *path == '/' && stat(path, &dir) == 0 && is_ours(&dir) &&
			       access(path, W_OK | X_OK) == 0
		       ? path
		       : NULL;
}

enum paths_base aw_paths_base(char base[PATH_MAX])
{
	const char *wanted = getenv("XDG_RUNTIME_DIR"), *used = runtime_path();

	(void)snprintf(base, PATH_MAX, "%s", used ? used : "/tmp");
	if (access(base, W_OK | X_OK) != 0)
		return PATHS_NOWHERE;
	return used || !wanted || !*wanted ? PATHS_AS_WANTED : PATHS_FALLBACK;
}

/*
 * Makes the directory of a user, network namespace and persona: interfaces belong to the namespace,
 * types of GIDs to the persona. In /tmp somebody else may have taken the name first.
 */
static bool root_make(char root[PATH_MAX])
{
	const char *runtime = runtime_path(), *persona = getenv("ANYWARP_PERSONA");
	struct stat net, made;
	int len;

	if (stat("/proc/self/ns/net", &net) != 0)
		net.st_ino = 0;
	len = snprintf(root, PATH_MAX - 7, "%s/anywarp-paths-%u-%llu%s", runtime ? runtime : "/tmp",
		       (unsigned int)geteuid(), (unsigned long long)net.st_ino,
		       persona && !strcmp(persona, "roce") ? "-roce" : "");
	if (len >= PATH_MAX - 7)
		return false;
	if (!directory("%s", root) || lstat(root, &made) != 0)
		return false;
	if (is_ours(&made))
		return true;
	errno = EPERM;
	return !runtime && mkdtemp(strcat(root, "-XXXXXX"));
}

static bool node_make(const char *root, const char *name)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, name);

	return len < PATH_MAX && (symlink("/dev/null", path) == 0 || errno == EEXIST);
}

static bool is_usable(const struct ifaddrs *each)
{
	return each->ifa_addr && each->ifa_addr->sa_family == AF_INET && each->ifa_flags & IFF_UP;
}

static bool is_loopback(const struct ifaddrs *each)
{
	return each->ifa_flags & IFF_LOOPBACK;
}

/* A program takes the first interface: loopback is shown only where there is no other. */
static bool is_shown(const struct ifaddrs *all, const char *name)
{
	bool loopback = true;

	for (const struct ifaddrs *each = all; each && loopback; each = each->ifa_next)
		loopback = !is_usable(each) || is_loopback(each);
	for (const struct ifaddrs *each = all; each; each = each->ifa_next)
		if (is_usable(each) && is_loopback(each) == loopback &&
		    !strcmp(each->ifa_name, name))
			return true;
	return false;
}

static bool interfaces_make(const char *root)
{
	struct dirent *entry;
	char net[PATH_MAX];
	struct ifaddrs *all;
	bool done = true;
	DIR *dir;

	if (snprintf(net, sizeof(net), "%s/" NET, root) >= PATH_MAX || getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *each = all; each && done; each = each->ifa_next)
		if (is_shown(all, each->ifa_name))
			done = directory("%s/%s", net, each->ifa_name);

	/* An earlier program may have been shown interfaces that are gone since. */
	dir = done ? opendir(net) : NULL;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !is_shown(all, entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
	freeifaddrs(all);
	return dir != NULL;
}

static bool files_make(const char *root, const char *dir)
{
	static const char *const directories[] = {
		"dev",
		"dev/infiniband",
		"sys",
		"sys/class",
		"sys/class/infiniband",
		"sys/class/infiniband/" DEVICE,
		"sys/class/infiniband/" DEVICE "/device",
		NET,
		"sys/class/infiniband/" DEVICE "/ports",
		PORT,
		PORT "/gids",
		PORT "/gid_attrs",
		PORT "/gid_attrs/types",
		PORT "/gid_attrs/ndevs",
	};
	char port[PATH_MAX];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (!directory("%s/%s", root, directories[i]))
			return false;
	return node_make(root, "uverbs_" DEVICE) && node_make(root, "rdma_cm") &&
	       interfaces_make(root) && snprintf(port, sizeof(port), "%s/" PORT, root) < PATH_MAX &&
	       aw_paths_gids(port, dir);
}

bool aw_paths_export(const char *who, const char *dir)
{
	char root[PATH_MAX];

	if (!root_make(root) || !files_make(root, dir)) {
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
