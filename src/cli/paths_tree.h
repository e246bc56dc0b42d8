// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The directory that stands in the place of / for the paths of a device: its files, and where they are in it. `anywarp run`
// makes them, libanywarp-paths.so shows them.
#ifndef CLI_PATHS_TREE_H
#define CLI_PATHS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PATHS_DEVICE "anywarp0"
// As a device without a bus of its own. NCCL sets the last, the third last and the fourth last character of the path to 0, to
// find what ports and virtual functions have in common: here that changes nothing.
#define PATHS_PARENT_NAME "anywarp.00.0"
#define PATHS_BELOW_SYS "/devices/platform/" PATHS_PARENT_NAME
#define PATHS_PARENT "/sys" PATHS_BELOW_SYS
#define PATHS_IB PATHS_PARENT "/infiniband/" PATHS_DEVICE
#define PATHS_PORT PATHS_IB "/ports/1"
#define PATHS_VERBS PATHS_PARENT "/infiniband_verbs/uverbs_" PATHS_DEVICE

// The mode of a file whose text is made anew when a program opens it: nobody else gives a plain file the sticky bit. An empty one
// cannot be read, as the kernel's of an unused entry of the GID table: EINVAL.
#define PATHS_LIVE 01444
#define PATHS_PLAIN 0444

struct paths_tree {
	const char *root;
};

// Each returns false with errno. The path begins with a slash, and its directory is there.
__attribute__((warn_unused_result, format(printf, 2, 3))) bool aw_paths_directory(
	const struct paths_tree *tree, const char *format, ...);
__attribute__((warn_unused_result)) bool aw_paths_link(const struct paths_tree *tree,
						       const char *path, const char *target);
// A reader finds the old text or the new one, whole.
__attribute__((warn_unused_result)) bool aw_paths_file(const struct paths_tree *tree,
						       const char *path, mode_t mode,
						       const char *text);
// Removes a file if it is there.
void aw_paths_remove(const struct paths_tree *tree, const char *path);

#endif
