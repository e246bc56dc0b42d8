// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/paths_verbs.h"

#include "cli/cli.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#undef ibv_get_device_list

struct library {
	__typeof__(&ibv_get_device_list) get_list;
	__typeof__(&ibv_free_device_list) free_list;
	__typeof__(&ibv_open_device) open_device;
	__typeof__(&ibv_close_device) close_device;
	__typeof__(&ibv_query_device) query_device;
	__typeof__(&_ibv_query_gid_table) query_gids;
};

static bool library_open(const char *dir, struct library *library)
{
	char path[PATH_MAX];
	void *lib = NULL;

	if (snprintf(path, sizeof(path), "%s/" CLI_VERBS_LIB, dir) < PATH_MAX)
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
	library->get_list = dlsym(lib, "ibv_get_device_list");
	library->free_list = dlsym(lib, "ibv_free_device_list");
	library->open_device = dlsym(lib, "ibv_open_device");
	library->close_device = dlsym(lib, "ibv_close_device");
	library->query_device = dlsym(lib, "ibv_query_device");
	library->query_gids = dlsym(lib, "_ibv_query_gid_table");
	return library->get_list && library->free_list && library->open_device &&
	       library->close_device && library->query_device && library->query_gids;
}

static bool device_read(const struct library *library, struct ibv_context *context,
			struct paths_verbs *verbs)
{
	struct verbs_context *extended = verbs_get_ctx_op(context, query_port);

	verbs->node_type = context->device->node_type;
	verbs->gid_count = library->query_gids(context, verbs->gids, PATHS_GIDS_MAX, 0,
					       sizeof(verbs->gids[0]));
	return extended && library->query_device(context, &verbs->device) == 0 &&
	       extended->query_port(context, 1, &verbs->port, sizeof(verbs->port)) == 0;
}

void aw_paths_verbs_read(const char *dir, struct paths_verbs *verbs)
{
	struct library library;
	struct ibv_context *context;
	struct ibv_device **list;

	memset(verbs, 0, sizeof(*verbs));
	if (!library_open(dir, &library))
		return;
	list = library.get_list(NULL);
	if (!list)
		return;
	context = list[0] ? library.open_device(list[0]) : NULL;
	if (context) {
		verbs->known = device_read(&library, context, verbs);
		library.close_device(context);
	}
	library.free_list(list);
}
