// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The findings about the kernel module, anywarp.ko: whether it is loaded, and which devices it
// made. RDMA programs over anywarp's libraries do not need it, so its absence is never a fault.
#include "cli/doctor.h"

#include "cli/finding.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define WHAT "kernel module"
#define LOADED_DIR "/sys/module/anywarp"
#define DEVICES_DIR "/sys/class/infiniband"
#define FILE_NAME "/anywarp.ko"
#define NODE_DESC "anywarp" /* the node description of the module's devices */
#define NAMES_MAX 256
#define PATH_BYTES_MAX 512
#define LINE_BYTES_MAX 4096

static bool is_module_s_device(const char *name)
{
	char path[PATH_BYTES_MAX], desc[sizeof(NODE_DESC)] = "";
	FILE *file;

	snprintf(path, sizeof(path), DEVICES_DIR "/%s/node_desc", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(desc, sizeof(desc), file))
		desc[0] = 0;
	fclose(file);
	return !strcmp(desc, NODE_DESC);
}

// Writes the names of the module's devices, each after a space; if not all fit, the first ones.
// Returns how many devices there are.
static int list_devices(char names[NAMES_MAX])
{
	DIR *dir = opendir(DEVICES_DIR);
	struct dirent *entry;
	size_t used = 0;
	int count = 0;

	names[0] = 0;
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || !is_module_s_device(entry->d_name))
			continue;
		count++;
		if (used + len + 2 > NAMES_MAX)
			continue;
		names[used] = ' ';
		memcpy(names + used + 1, entry->d_name, len + 1);
		used += len + 1;
	}
	closedir(dir);
	return count;
}

// Looks for the module in depmod(8)'s list for the running kernel.
static bool is_installed(void)
{
	char path[PATH_BYTES_MAX], line[LINE_BYTES_MAX];
	struct utsname kernel;
	bool found = false;
	FILE *file;

	if (uname(&kernel) != 0)
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", kernel.release);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, ":\n")] = 0;
		found = strstr(line, FILE_NAME);
	}
	fclose(file);
	return found;
}

void aw_doctor_module(void)
{
	char names[NAMES_MAX];
	int count;

	if (access(LOADED_DIR, F_OK) != 0) {
		if (is_installed())
			aw_finding_print(FINDING_OK, WHAT, NULL,
					 "installed, not loaded (modprobe anywarp); only RDMA "
					 "users in the kernel need it");
		else
			aw_finding_print(FINDING_OK, WHAT, NULL,
					 "not installed; only RDMA users in the kernel need it");
		return;
	}
	count = list_devices(names);
	if (count == 0)
		aw_finding_print(FINDING_WARN, WHAT,
				 "rdma link add NAME type anywarp netdev INTERFACE",
				 "loaded, without a device");
	else
		aw_finding_print(FINDING_OK, WHAT, NULL, "loaded, with %d device%s:%s", count,
				 count == 1 ? "" : "s", names);
}
