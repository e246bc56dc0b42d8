// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where libraries' own words are read back: hwloc and UCX parse local_cpus and numa_node, libibumad parses ports.
#include "cli/paths_device.h"

#include "cli/paths_counters.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TEXT_MAX 512
#define CPUS_MAX 1024 // that local_cpus shows
#define WORD 32 // CPUs in a group of its digits

struct attribute {
	const char *path;
	char text[TEXT_MAX];
};

static void guid_print(__be64 guid, char text[TEXT_MAX])
{
	uint64_t bits = be64toh(guid);

	snprintf(text, TEXT_MAX, "%04x:%04x:%04x:%04x\n", (unsigned)(bits >> 48) & 0xffff,
		 (unsigned)(bits >> 32) & 0xffff, (unsigned)(bits >> 16) & 0xffff,
		 (unsigned)bits & 0xffff);
}

static const char *node_type(int type)
{
	return type == IBV_NODE_RNIC ? "4: RNIC\n" : "1: CA\n";
}

static bool write_all(const struct paths_tree *tree, const struct attribute *attributes,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!aw_paths_file(tree, attributes[i].path, PATHS_PLAIN, attributes[i].text))
			return false;
	return true;
}

static bool device_write(const struct paths_tree *tree, const struct paths_verbs *verbs)
{
	char host[HOST_NAME_MAX + 1] = "";
	struct attribute attributes[] = {
		{ PATHS_IB "/hca_type", "anywarp\n" },
		{ PATHS_IB "/board_id", "anywarp\n" },
		{ PATHS_IB "/uevent", "NAME=" PATHS_DEVICE "\n" },
		{ PATHS_IB "/node_type", "" },
		{ PATHS_IB "/node_guid", "" },
		{ PATHS_IB "/sys_image_guid", "" },
		{ PATHS_IB "/node_desc", "" },
		{ PATHS_IB "/fw_ver", "" },
		{ PATHS_IB "/hw_rev", "" },
	};
	struct attribute *at = attributes + 3;

	(void)gethostname(host, HOST_NAME_MAX);
	strcpy((at++)->text, node_type(verbs->node_type));
	guid_print(verbs->device.node_guid, (at++)->text);
	guid_print(verbs->device.sys_image_guid, (at++)->text);
	snprintf((at++)->text, TEXT_MAX, "%s " PATHS_DEVICE "\n", host);
	snprintf((at++)->text, TEXT_MAX, "%s\n", verbs->device.fw_ver);
	snprintf((at++)->text, TEXT_MAX, "%x\n", verbs->device.hw_ver);
	return write_all(tree, attributes, sizeof(attributes) / sizeof(attributes[0]));
}

// The rate is nominal, as the verbs have it: four lanes of 25 Gb/s.
static bool port_write(const struct paths_tree *tree, const struct ibv_port_attr *port)
{
	bool active = port->state == IBV_PORT_ACTIVE;
	struct attribute attributes[] = {
		{ PATHS_PORT "/rate", "100 Gb/sec (4X EDR)\n" },
		{ PATHS_PORT "/link_layer", "Ethernet\n" },
		{ PATHS_PORT "/pkeys/0", "0xffff\n" },
		{ PATHS_PORT "/hw_counters/lifespan", "0\n" },
		{ PATHS_PORT "/lid", "" },
		{ PATHS_PORT "/lid_mask_count", "" },
		{ PATHS_PORT "/sm_lid", "" },
		{ PATHS_PORT "/sm_sl", "" },
		{ PATHS_PORT "/cap_mask", "" },
	};
	struct attribute *at = attributes + 4;

	snprintf((at++)->text, TEXT_MAX, "0x%x\n", port->lid);
	snprintf((at++)->text, TEXT_MAX, "%u\n", port->lmc);
	snprintf((at++)->text, TEXT_MAX, "0x%x\n", port->sm_lid);
	snprintf((at++)->text, TEXT_MAX, "%u\n", port->sm_sl);
	snprintf((at++)->text, TEXT_MAX, "0x%08x\n", port->port_cap_flags);
	return write_all(tree, attributes, sizeof(attributes) / sizeof(attributes[0])) &&
	       aw_paths_file(tree, PATHS_PORT "/state", PATHS_LIVE,
			     active ? "4: ACTIVE\n" : "1: DOWN\n") &&
	       aw_paths_file(tree, PATHS_PORT "/phys_state", PATHS_LIVE,
			     active ? "5: LinkUp\n" : "3: Disabled\n");
}

static bool counters_write(const struct paths_tree *tree)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < PATHS_COUNTERS; i++) {
		snprintf(path, sizeof(path), PATHS_PORT "/%s", aw_paths_counters[i].path);
		if (!aw_paths_file(tree, path, PATHS_LIVE, "0\n"))
			return false;
	}
	return true;
}

// All of the host's CPUs, in groups of 32, the highest first.
static void cpus_print(char mask[TEXT_MAX], char list[TEXT_MAX])
{
	long count = sysconf(_SC_NPROCESSORS_CONF);
	char *to = mask;

	if (count < 1)
		count = 1;
	if (count > CPUS_MAX)
		count = CPUS_MAX;
	for (long word = (count - 1) / WORD; word >= 0; word--) {
		long left = count - word * WORD;

		to += sprintf(to, "%08x%s", left >= WORD ? UINT32_MAX : (1u << left) - 1,
			      word ? "," : "\n");
	}
	if (count == 1)
		strcpy(list, "0\n");
	else
		sprintf(list, "0-%ld\n", count - 1);
}

// It is no function of a PCI device, so it shows none of their files: no vendor, no device, no class.
static bool parent_write(const struct paths_tree *tree)
{
	struct attribute attributes[] = {
		{ PATHS_PARENT "/numa_node", "-1\n" },
		{ PATHS_PARENT "/modalias", "platform:anywarp\n" },
		{ PATHS_PARENT "/uevent", "MODALIAS=platform:anywarp\n" },
		{ PATHS_PARENT "/local_cpus", "" },
		{ PATHS_PARENT "/local_cpulist", "" },
	};

	cpus_print(attributes[3].text, attributes[4].text);
	return write_all(tree, attributes, sizeof(attributes) / sizeof(attributes[0]));
}

static bool classes_write(const struct paths_tree *tree)
{
	struct attribute attributes[] = {
		{ "/sys/class/infiniband_verbs/abi_version", "6\n" },
		{ "/sys/class/infiniband_mad/abi_version", "5\n" },
		{ PATHS_VERBS "/ibdev", PATHS_DEVICE "\n" },
		{ PATHS_VERBS "/abi_version", "1\n" },
		{ PATHS_VERBS "/dev", "" },
	};
	struct stat null;

	// The device file leads to /dev/null.
	if (stat("/dev/null", &null) != 0)
		return false;
	snprintf(attributes[4].text, TEXT_MAX, "%u:%u\n", major(null.st_rdev), minor(null.st_rdev));
	return write_all(tree, attributes, sizeof(attributes) / sizeof(attributes[0]));
}

bool aw_paths_device(const struct paths_tree *tree, const struct paths_verbs *verbs)
{
	return parent_write(tree) && device_write(tree, verbs) && port_write(tree, &verbs->port) &&
	       counters_write(tree) && classes_write(tree);
}
