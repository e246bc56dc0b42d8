// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// inert LIBIBVERBS LIST LIBRDMACM LIST: calls every exported function that has no function in
// anywarp and requires the error it promises. The arguments are bad pointers: looking at one of
// them crashes.
#define _GNU_SOURCE // dlvsym

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef intptr_t (*any_function)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

enum answer {
	ERROR_NUMBER,
	MINUS_ONE,
	NULL_POINTER,
	TEXT,
	NOTHING,
	NOT_INERT
};

static const intptr_t bad = -4096;

static unsigned int calls, wrong;

static int starts(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

static int any_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return 1;
	return 0;
}

static enum answer answer_1_0(const char *name)
{
	static const char *const nothing[] = { "ibv_free_device_list", "ibv_ack_async_event",
					       "ibv_ack_cq_events", "ibv_register_driver", NULL };
	static const char *const minus_one[] = { "ibv_get_cq_event", "ibv_get_async_event",
						 "ibv_query_gid",    "ibv_query_pkey",
						 "ibv_close_device", NULL };
	static const char *const null[] = { "ibv_get_device_name", "ibv_get_device_guid",
					    "ibv_open_device", "ibv_reg_mr", NULL };

	if (!strcmp(name, "ibv_get_device_list"))
		return NOT_INERT; // writes the number of devices; main() calls it
	if (any_of(name, nothing))
		return NOTHING;
	if (any_of(name, minus_one))
		return MINUS_ONE;
	if (any_of(name, null) || starts(name, "ibv_create_") || starts(name, "ibv_alloc_"))
		return NULL_POINTER;
	return ERROR_NUMBER;
}

static enum answer answer_today(const char *name)
{
	static const char *const nothing[] = { "verbs_init_cq",
					       "verbs_set_ops",
					       "verbs_uninit_context",
					       "__verbs_log",
					       "ibv_dmabuf_heap_free",
					       "ibv_dmabuf_heap_destroy",
					       NULL };
	static const char *const null[] = {
		"verbs_open_device",	 "_verbs_init_and_alloc_context",  "ibv_alloc_dmah",
		"ibv_dmabuf_heap_alloc", "ibv_dmabuf_heap_cc_shared_init", NULL
	};
	static const char *const minus_one[] = { "ibv_read_ibdev_sysfs_file",
						 "ibv_dm_export_dmabuf_fd",
						 "repoll_create",
						 "repoll_ctl",
						 "repoll_wait",
						 NULL };
	static const char *const error_number[] = { "execute_ioctl", "ibv_resolve_eth_l2_from_gid",
						    "ibv_dealloc_dmah", NULL };

	if (any_of(name, nothing) || starts(name, "verbs_register_driver_"))
		return NOTHING;
	if (any_of(name, null))
		return NULL_POINTER;
	if (!strcmp(name, "ibv_wr_opcode_str"))
		return TEXT;
	if (any_of(name, minus_one))
		return MINUS_ONE;
	if (any_of(name, error_number) || starts(name, "ibv_cmd_"))
		return ERROR_NUMBER;
	return NOT_INERT;
}

static int is_right(enum answer answer, intptr_t got)
{
	switch (answer) {
	case ERROR_NUMBER: // ibv_cmd_poll_cq answers a count, so its error is negative
		return (abs((int)got) == EOPNOTSUPP || (int)got == ENOSYS) &&
		       errno == abs((int)got);
	case MINUS_ONE:
		return (int)got == -1 &&
		       (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOENT);
	case NULL_POINTER:
		return !got;
	case TEXT:
		return got && *(const char *)got;
	case NOTHING:
	case NOT_INERT:
		break;
	}
	return 1;
}

/* At a private node every name is there for old binaries or newer ones, and answers as today's. */
static enum answer answer_of(const char *node, const char *name, const char *kind)
{
	int is_1_0 = !strcmp(kind, "compat") && !starts(node, "IBVERBS_PRIVATE");

	return is_1_0 ? answer_1_0(name) : answer_today(name);
}

static void check(void *lib, const char *node, const char *name, enum answer answer)
{
	any_function f;

	if (answer == NOT_INERT)
		return;
	f = (any_function)dlvsym(lib, name, node);
	errno = 0;
	calls++;
	if (!f || !is_right(answer, f(bad, bad, bad, bad, bad, bad))) {
		printf("%s@%s: wrong answer\n", name, node);
		wrong++;
	}
}

static void check_list(void *lib, const char *path)
{
	char line[256], node[64], name[64], type[16], kind[16];
	FILE *list = fopen(path, "r");

	if (!list) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof(line), list)) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "%63s %63s %15s %15s", node, name, type, kind) != 4)
			exit(1);
		if (!strcmp(type, "FUNC"))
			check(lib, node, name, answer_of(node, name, kind));
	}
	fclose(list);
}

static void check_devices_1_0(void *lib)
{
	void *(*get_device_list)(int *) =
		(void *(*)(int *))dlvsym(lib, "ibv_get_device_list", "IBVERBS_1.0");
	int num = 7;

	calls++;
	if (!get_device_list || get_device_list(&num) || num != 0 || get_device_list(NULL)) {
		printf("ibv_get_device_list@IBVERBS_1.0: wrong answer\n");
		wrong++;
	}
}

static void *open_library(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		printf("%s\n", dlerror());
		exit(1);
	}
	return lib;
}

int main(int argc, char **argv)
{
	void *verbs;

	if (argc != 5)
		return 2;
	verbs = open_library(argv[1]);
	check_devices_1_0(verbs);
	check_list(verbs, argv[2]);
	check_list(open_library(argv[3]), argv[4]);
	printf("%u inert functions called, %u wrong\n", calls, wrong);
	return wrong || !calls;
}
