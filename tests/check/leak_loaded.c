// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that finds its verbs by dlopen and dlvsym, as NCCL does, is followed like any other. What it loads besides is still looked for
// where its own RUNPATH says.
#define _GNU_SOURCE // dlvsym
#include "pair.h"

#include <dlfcn.h>
#include <string.h>

/* POSIX has dlvsym give a function as an object's pointer; the copy says so to the compiler. */
static void find(void *verbs, const char *name, void *function)
{
	void *found = dlvsym(verbs, name, "IBVERBS_1.1");

	EXPECT(found != NULL);
	memcpy(function, &found, sizeof(found));
}

#undef ibv_get_device_list

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW),
	     *own = dlopen("libcheck_own.so", RTLD_NOW);
	__typeof__(ibv_get_device_list) *get_device_list;
	__typeof__(ibv_free_device_list) *free_device_list;
	__typeof__(ibv_get_device_name) *get_device_name;
	__typeof__(ibv_open_device) *open_device;
	__typeof__(ibv_close_device) *close_device;
	__typeof__(ibv_alloc_pd) *alloc_pd;
	__typeof__(ibv_dealloc_pd) *dealloc_pd;

	EXPECT(verbs && own);
	find(verbs, "ibv_get_device_list", &get_device_list);
	find(verbs, "ibv_free_device_list", &free_device_list);
	find(verbs, "ibv_get_device_name", &get_device_name);
	find(verbs, "ibv_open_device", &open_device);
	find(verbs, "ibv_close_device", &close_device);
	find(verbs, "ibv_alloc_pd", &alloc_pd);
	find(verbs, "ibv_dealloc_pd", &dealloc_pd);
	struct ibv_device **devices = get_device_list(NULL);

	EXPECT(devices && devices[0]);
	EXPECT(strcmp(get_device_name(devices[0]), devices[0]->name) == 0);
	struct ibv_context *context = open_device(devices[0]);

	EXPECT(context != NULL);
	struct ibv_pd *pd = alloc_pd(context); /* REPORT leak */

	EXPECT(pd != NULL);
	free_device_list(devices);
	if (!wrong)
		EXPECT(dealloc_pd(pd) == 0);
	EXPECT(close_device(context) == 0);
	EXPECT(dlclose(own) == 0 && dlclose(verbs) == 0);
	return 0;
}
