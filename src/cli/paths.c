// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes what a kernel with a driver of the device would show: UCX wants a character device of the name
// that libibverbs told, for which /dev/null does; pyverbs' tests want to know the network
// interface; NCCL and others choose a GID by its type; ibstat, hwloc and monitors read the attributes. The files stay when
// the program ends: another of the same user, in the same network namespace and persona, uses the same ones.
#include "cli/paths.h"

#include "cli/launch.h"
#include "cli/paths_counters.h"
#include "cli/paths_device.h"
#include "cli/paths_gids.h"
#include "cli/paths_tree.h"
#include "cli/paths_verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NET PATHS_PARENT "/net"

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
	len = snprintf(root, PATH_MAX - 7, "%s/anywarp-sys-%u-%llu%s", runtime ? runtime : "/tmp",
		       (unsigned int)geteuid(), (unsigned long long)net.st_ino,
		       persona && !strcmp(persona, "roce") ? "-roce" : "");
	if (len >= PATH_MAX - 7)
		return false;
	if ((mkdir(root, 0700) != 0 && errno != EEXIST) || lstat(root, &made) != 0)
		return false;
	if (is_ours(&made))
		return true;
	errno = EPERM;
	return !runtime && mkdtemp(strcat(root, "-XXXXXX"));
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

static bool interfaces_make(const struct paths_tree *tree)
{
	struct dirent *entry;
	char net[PATH_MAX];
	struct ifaddrs *all;
	bool done = true;
	DIR *dir;

	if (snprintf(net, sizeof(net), "%s" NET, tree->root) >= PATH_MAX || getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *each = all; each && done; each = each->ifa_next)
		if (is_shown(all, each->ifa_name))
			done = aw_paths_directory(tree, NET "/%s", each->ifa_name);

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

/* A directory comes behind the one that it is in. */
static const char *const directories[] = {
	"/dev",
	"/dev/infiniband",
	"/sys",
	"/sys/bus",
	"/sys/bus/platform",
	"/sys/class",
	"/sys/class/infiniband",
	"/sys/class/infiniband_mad",
	"/sys/class/infiniband_verbs",
	"/sys/devices",
	"/sys/devices/platform",
	PATHS_PARENT,
	NET,
	PATHS_PARENT "/infiniband",
	PATHS_PARENT "/infiniband_verbs",
	PATHS_VERBS,
	PATHS_IB,
	PATHS_IB "/ports",
	PATHS_PORT,
	PATHS_PORT "/counters",
	PATHS_PORT "/gids",
	PATHS_PORT "/gid_attrs",
	PATHS_PORT "/gid_attrs/types",
	PATHS_PORT "/gid_attrs/ndevs",
	PATHS_PORT "/hw_counters",
	PATHS_PORT "/pkeys",
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "/dev/infiniband/uverbs_" PATHS_DEVICE, "/dev/null" },
	{ "/dev/infiniband/rdma_cm", "/dev/null" },
	{ "/sys/class/infiniband/" PATHS_DEVICE,
	  "../.." PATHS_BELOW_SYS "/infiniband/" PATHS_DEVICE },
	{ "/sys/class/infiniband_verbs/uverbs_" PATHS_DEVICE,
	  "../.." PATHS_BELOW_SYS "/infiniband_verbs/uverbs_" PATHS_DEVICE },
	{ PATHS_PARENT "/subsystem", "../../../bus/platform" },
	{ PATHS_IB "/device", "../../../" PATHS_PARENT_NAME },
	{ PATHS_IB "/subsystem", "../../../../../class/infiniband" },
	{ PATHS_VERBS "/device", "../../../" PATHS_PARENT_NAME },
	{ PATHS_VERBS "/subsystem", "../../../../../class/infiniband_verbs" },
};

/* The counts of QPs that are gone stay when programs end, and are lost with the directory. */
static bool totals_make(const struct paths_tree *tree)
{
	struct aw_totals totals = { .magic = AW_TOTALS_MAGIC };
	char path[PATH_MAX], part[PATH_MAX], zero[AW_TOTALS_LEN - sizeof(totals)] = { 0 };
	bool done;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/" AW_TOTALS_NAME, tree->root) >= PATH_MAX ||
	    snprintf(part, sizeof(part), "%s/totals-%d", tree->root, (int)getpid()) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	if (access(path, R_OK | W_OK) == 0)
		return true;
	file = fopen(part, "we");
	if (!file)
		return false;
	done = fwrite(&totals, sizeof(totals), 1, file) == 1 &&
	       fwrite(zero, sizeof(zero), 1, file) == 1 && fchmod(fileno(file), 0600) == 0;
	done = fclose(file) == 0 && done && (link(part, path) == 0 || errno == EEXIST);
	(void)unlink(part);
	return done;
}

static bool files_make(const char *root, const char *dir)
{
	const struct paths_tree tree = { root };
	static struct paths_verbs verbs;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (!aw_paths_directory(&tree, "%s", directories[i]))
			return false;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (!aw_paths_link(&tree, links[i].path, links[i].target))
			return false;
	/* Without a device the library tells the program why. */
	aw_paths_verbs_read(dir, &verbs);
	return totals_make(&tree) && interfaces_make(&tree) && aw_paths_device(&tree, &verbs) &&
	       aw_paths_gids(&tree, &verbs);
}

bool aw_paths_export(const char *who, const char *dir)
{
	char root[PATH_MAX], plain[PATH_MAX];

	/* The library compares it with paths that have no links in them. */
	if (!root_make(root) || !realpath(root, plain) || !files_make(strcpy(root, plain), dir)) {
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
