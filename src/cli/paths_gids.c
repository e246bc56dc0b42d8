// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each entry is a file of gids, of gid_attrs/types and of gid_attrs/ndevs, in the order of the
// verbs: a program passes the index of a file that it reads here to the verbs. Of the library only
// the verbs' own header is known.
#include "cli/paths_gids.h"

#include "cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GIDS_MAX 256
#define TEXT_MAX 64

struct table {
	ssize_t count;
	struct ibv_gid_entry entries[GIDS_MAX];
};

/* Without a device there is no table: the library tells the program why. */
static void table_read(const char *dir, struct table *table)
{
	__typeof__(&ibv_get_device_list) get_list;
	__typeof__(&ibv_free_device_list) free_list;
	__typeof__(&ibv_open_device) open_device;
	__typeof__(&ibv_close_device) close_device;
	__typeof__(&_ibv_query_gid_table) query;
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	char path[PATH_MAX];
	void *lib = NULL;

	table->count = 0;
	if (snprintf(path, sizeof(path), "%s/" CLI_VERBS_LIB, dir) < PATH_MAX)
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	get_list = dlsym(lib, "ibv_get_device_list");
	free_list = dlsym(lib, "ibv_free_device_list");
	open_device = dlsym(lib, "ibv_open_device");
	close_device = dlsym(lib, "ibv_close_device");
	query = dlsym(lib, "_ibv_query_gid_table");
	list = get_list && free_list ? get_list(NULL) : NULL;
	if (!list)
		return;
	if (list[0] && open_device && close_device && query)
		context = open_device(list[0]);
	if (context) {
		table->count =
			query(context, table->entries, GIDS_MAX, 0, sizeof(table->entries[0]));
		close_device(context);
	}
	free_list(list);
}

static bool file_write(const char *port, const char *kind, ssize_t index, const char *text)
{
	char path[PATH_MAX], part[PATH_MAX];
	FILE *file;
	bool done;

	if (snprintf(path, sizeof(path), "%s/%s/%zd", port, kind, index) >= PATH_MAX ||
	    snprintf(part, sizeof(part), "%s/part-%d", port, (int)getpid()) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	file = fopen(part, "we");
	if (!file)
		return false;
	done = fputs(text, file) >= 0;
	done = fclose(file) == 0 && done && rename(part, path) == 0;
	if (!done) {
		int error = errno;

		(void)unlink(part);
		errno = error;
	}
	return done;
}

/*
 * Writes the files of one entry. An unused entry has empty types and ndevs: libanywarp-paths.so
 * knows it by that.
 */
static bool entry_write(const char *port, ssize_t index, const union ibv_gid *gid, const char *type,
			const char *interface)
{
	char text[TEXT_MAX], *to = text;

	for (int i = 0; i < 16; i += 2)
		to += sprintf(to, "%s%02x%02x", i ? ":" : "", gid->raw[i], gid->raw[i + 1]);
	strcpy(to, "\n");
	return file_write(port, "gid_attrs/types", index, type) &&
	       file_write(port, "gid_attrs/ndevs", index, interface) &&
	       file_write(port, "gids", index, text);
}

bool aw_paths_gids(const char *port, const char *dir)
{
	static const char *const kinds[] = { "gids", "gid_attrs/types", "gid_attrs/ndevs" };
	static const union ibv_gid none;
	static struct table table;
	char interface[IF_NAMESIZE + 1], path[PATH_MAX];
	bool done = true;

	table_read(dir, &table);
	for (ssize_t i = 0; i < table.count && done; i++) {
		const struct ibv_gid_entry *entry = &table.entries[i];
		bool is_v2 = entry->gid_type == IBV_GID_TYPE_ROCE_V2;

		if (!if_indextoname(entry->ndev_ifindex, interface))
			interface[0] = '\0'; /* the interface went away since */
		else
			strcat(interface, "\n");
		done = entry_write(port, i, &entry->gid, is_v2 ? "RoCE v2\n" : "IB/RoCE v1\n",
				   interface);
	}
	if (table.count <= 0) {
		table.count = 1; /* a table has one entry at least */
		done = entry_write(port, 0, &none, "", "");
	}
	if (!done)
		return false;

	/* An earlier, longer table has files behind this one. */
	for (ssize_t index = table.count; index < GIDS_MAX; index++)
		for (int kind = 0; kind < 3; kind++)
			if (snprintf(path, sizeof(path), "%s/%s/%zd", port, kinds[kind], index) <
			    PATH_MAX)
				(void)unlink(path);
	return true;
}
