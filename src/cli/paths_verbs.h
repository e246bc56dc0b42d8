// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the library that a program is going to get about its device. Of the library only the verbs' own header is known.
#ifndef CLI_PATHS_VERBS_H
#define CLI_PATHS_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/types.h>

#define PATHS_GIDS_MAX 256

struct paths_verbs {
	bool known; // the library has a device, and said all of this; else it tells the program why not
	int node_type;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	ssize_t gid_count;
	struct ibv_gid_entry gids[PATHS_GIDS_MAX];
};

// dir: where the library is.
void aw_paths_verbs_read(const char *dir, struct paths_verbs *verbs);

#endif
