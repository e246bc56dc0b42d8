// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loads our libraries the way a program's loader does and looks at the device they show. Only the
// public headers are used; every call goes through dlsym.
#define _GNU_SOURCE // dladdr
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/finding.h"
#include "crc/crc.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIDS_MAX 256
#define LINK_SECONDS_MAX 15
#define BUG "report it as a bug of anywarp"

// The calls of libibverbs that the probe makes.
struct verbs_calls {
	__typeof__(&ibv_get_device_list) get_device_list;
	__typeof__(&ibv_free_device_list) free_device_list;
	__typeof__(&ibv_get_device_name) get_device_name;
	__typeof__(&ibv_open_device) open_device;
	__typeof__(&ibv_close_device) close_device;
	__typeof__(&ibv_query_device) query_device;
	__typeof__(&ibv_query_gid) query_gid;
};

static bool find_calls(void *lib, struct verbs_calls *calls)
{
	calls->get_device_list = dlsym(lib, "ibv_get_device_list");
	calls->free_device_list = dlsym(lib, "ibv_free_device_list");
	calls->get_device_name = dlsym(lib, "ibv_get_device_name");
	calls->open_device = dlsym(lib, "ibv_open_device");
	calls->close_device = dlsym(lib, "ibv_close_device");
	calls->query_device = dlsym(lib, "ibv_query_device");
	calls->query_gid = dlsym(lib, "ibv_query_gid");
	return calls->get_device_list && calls->free_device_list && calls->get_device_name &&
	       calls->open_device && calls->close_device && calls->query_device && calls->query_gid;
}

// Loads the library. NULL: it does not load, or the loader took another than that in dir, which was printed.
static void *load(const char *dir, const char *name, const char *symbol)
{
	void *lib = dlopen(name, RTLD_NOW | RTLD_GLOBAL), *call;
	char real[PATH_MAX];
	Dl_info info;

	if (!lib) {
		aw_finding_print(FINDING_FAIL, name, "build or install anywarp again",
				 "it does not load: %s", dlerror());
		return NULL;
	}
	call = dlsym(lib, symbol);
	if (!call || !dladdr(call, &info) || !realpath(info.dli_fname, real)) {
		aw_finding_print(FINDING_FAIL, name, BUG, "its calls cannot be found");
		return NULL;
	}
	if (strncmp(real, dir, strlen(dir)) != 0) {
		aw_finding_print(FINDING_FAIL, name,
				 "look for an RPATH, LD_PRELOAD or ld.so.preload",
				 "the loader took %s, not the one in %s", real, dir);
		return NULL;
	}
	aw_finding_print(FINDING_OK, name, NULL, "%s", real);
	return lib;
}

static void check_gids(const struct verbs_calls *calls, struct ibv_context *context)
{
	static const union ibv_gid none;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;
	int index;

	for (index = 0; index < GIDS_MAX; index++) {
		errno = 0;
		if (calls->query_gid(context, 1, index, &gid) != 0 ||
		    !memcmp(&gid, &none, sizeof(gid)))
			break;
		if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid.raw))
			inet_ntop(AF_INET, gid.raw + 12, text, sizeof(text));
		else
			inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
		aw_finding_print(FINDING_OK, "address", NULL, "GID %d is %s", index, text);
	}
	if (index == 0)
		aw_finding_print(FINDING_FAIL, "address",
				 aw_doctor_remedy(errno,
						  "bring an interface up: ip link set lo up"),
				 "the device has no address");
}

static void check_device(const struct verbs_calls *calls, struct ibv_device *device)
{
	const char *name = calls->get_device_name(device);
	struct ibv_context *context = calls->open_device(device);
	struct ibv_device_attr attr;

	if (!context) {
		aw_finding_print(FINDING_FAIL, "device", aw_doctor_remedy(errno, BUG),
				 "%s does not open: %s", name, strerror(errno));
		return;
	}
	if (calls->query_device(context, &attr) == 0)
		aw_finding_print(FINDING_OK, "device", NULL, "%s, up to %d QPs of %d WRs", name,
				 attr.max_qp, attr.max_qp_wr);
	else
		aw_finding_print(FINDING_FAIL, "device", BUG, "%s cannot be queried", name);
	check_gids(calls, context);
	calls->close_device(context);
}

static void check_crc(void)
{
	const char *instructions = aw_crc32c_instructions();

	if (instructions)
		aw_finding_print(FINDING_OK, "CRC32c", NULL, "by %s", instructions);
	else
		aw_finding_print(
			FINDING_WARN, "CRC32c",
			"use an x86-64 processor with SSE4.2 or an arm64 one with CRC32 and PMULL",
			"by a table: correct, but large messages are slower");
}

int aw_doctor_probe(const char *dir, const char *part)
{
	struct ibv_device **list;
	struct verbs_calls calls;
	int count = 0;
	void *verbs;

	if (strcmp(part, DOCTOR_LIBRARIES) != 0) {
		alarm(LINK_SECONDS_MAX);
		return aw_doctor_link() ? CLI_OK : CLI_FAILED;
	}
	verbs = load(dir, CLI_VERBS_LIB, "ibv_get_device_list");
	if (!verbs || !load(dir, CLI_RDMACM_LIB, "rdma_create_id"))
		return CLI_FAILED;
	if (!find_calls(verbs, &calls)) {
		aw_finding_print(FINDING_FAIL, CLI_VERBS_LIB, BUG, "a call is missing");
		return CLI_FAILED;
	}
	check_crc();
	list = calls.get_device_list(&count);
	if (list && count > 0)
		check_device(&calls, list[0]);
	else
		aw_finding_print(FINDING_FAIL, "device", BUG, "the library shows no device");
	if (list)
		calls.free_device_list(list);
	return aw_finding_any_failed() ? CLI_FAILED : CLI_OK;
}

const char *aw_doctor_remedy(int error, const char *or_else)
{
	switch (error) {
	case EMFILE:
		return "raise the limit of file descriptors: ulimit -n 65536";
	case ENFILE:
		return "raise the machine's limit of open files: sysctl -w fs.file-max=1000000";
	case EAGAIN:
		return "raise the process limit: ulimit -u";
	case ENOMEM:
		return "free memory, or raise its limits: ulimit -v and -l";
	default:
		return or_else;
	}
}
