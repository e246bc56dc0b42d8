// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes of the device and of its port as files, in the kernel's words.
#ifndef CLI_PATHS_DEVICE_H
#define CLI_PATHS_DEVICE_H

#include "cli/paths_tree.h"
#include "cli/paths_verbs.h"

// Writes the files, whose directories are there.
__attribute__((warn_unused_result)) bool aw_paths_device(const struct paths_tree *tree,
							 const struct paths_verbs *verbs);

#endif
