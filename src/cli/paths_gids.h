// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The port's GID table as files, for programs that read it in /sys/class/infiniband.
#ifndef CLI_PATHS_GIDS_H
#define CLI_PATHS_GIDS_H

#include <limits.h>
#include <stdbool.h>

// Writes the table into the directory of the port, which holds gids, gid_attrs/types and
// gid_attrs/ndevs, as the library in dir has them now. A reader finds the old file or the new one,
// whole.
__attribute__((warn_unused_result)) bool aw_paths_gids(const char *port, const char *dir);

#endif
