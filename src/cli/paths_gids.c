// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each entry is a file of gids, of gid_attrs/types and of gid_attrs/ndevs, in the order of the
// verbs: a program passes the index of a file that it reads here to the verbs.
#include "cli/paths_gids.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 64

static const char *const kinds[] = { "gids", "gid_attrs/types", "gid_attrs/ndevs" };

enum {
	GIDS,
	TYPES,
	NDEVS,
	KINDS,
};

/* Writes the files of one entry. An unused entry has empty types and ndevs, which cannot be read. */
static bool entry_write(const struct paths_tree *tree, ssize_t index, const char *texts[KINDS])
{
	char path[PATH_MAX];
	bool done = true;

	for (int kind = 0; kind < KINDS && done; kind++) {
		snprintf(path, sizeof(path), PATHS_PORT "/%s/%zd", kinds[kind], index);
		done = aw_paths_file(tree, path, *texts[kind] ? PATHS_PLAIN : PATHS_LIVE,
				     texts[kind]);
	}
	return done;
}

static void gid_print(const union ibv_gid *gid, char text[TEXT_MAX])
{
	char *to = text;

	for (int i = 0; i < 16; i += 2)
		to += sprintf(to, "%s%02x%02x", i ? ":" : "", gid->raw[i], gid->raw[i + 1]);
	strcpy(to, "\n");
}

bool aw_paths_gids(const struct paths_tree *tree, const struct paths_verbs *verbs)
{
	static const union ibv_gid none;
	char interface[IF_NAMESIZE + 1], gid[TEXT_MAX], path[PATH_MAX];
	const char *texts[KINDS] = { [GIDS] = gid, [NDEVS] = interface };
	ssize_t count = verbs->gid_count;
	bool done = true;

	for (ssize_t i = 0; i < count && done; i++) {
		const struct ibv_gid_entry *entry = &verbs->gids[i];
		bool is_v2 = entry->gid_type == IBV_GID_TYPE_ROCE_V2;

		if (!if_indextoname(entry->ndev_ifindex, interface))
			interface[0] = '\0'; /* the interface went away since */
		else
			strcat(interface, "\n");
		gid_print(&entry->gid, gid);
		texts[TYPES] = is_v2 ? "RoCE v2\n" : "IB/RoCE v1\n";
		done = entry_write(tree, i, texts);
	}
	if (count <= 0) {
		count = 1; /* a table has one entry at least */
		gid_print(&none, gid);
		texts[TYPES] = texts[NDEVS] = "";
		done = entry_write(tree, 0, texts);
	}
	if (!done)
		return false;

	/* An earlier, longer table has files behind this one. */
	for (ssize_t index = count; index < PATHS_GIDS_MAX; index++)
		for (int kind = 0; kind < KINDS; kind++) {
			snprintf(path, sizeof(path), PATHS_PORT "/%s/%zd", kinds[kind], index);
			aw_paths_remove(tree, path);
		}
	return true;
}
