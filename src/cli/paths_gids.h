// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The port's GID table as files, for programs that read it in /sys/class/infiniband.
#ifndef CLI_PATHS_GIDS_H
#define CLI_PATHS_GIDS_H

#include "cli/paths_tree.h"
#include "cli/paths_verbs.h"

// Writes the table, whose directories are there.
__attribute__((warn_unused_result)) bool aw_paths_gids(const struct paths_tree *tree,
						       const struct paths_verbs *verbs);

#endif
