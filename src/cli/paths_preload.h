// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the wrappers of libanywarp-paths.so have in common.
#ifndef CLI_PATHS_PRELOAD_H
#define CLI_PATHS_PRELOAD_H

#include <limits.h>

#define EXPORT __attribute__((visibility("default")))

// The call of that name as it would be without us, to be called as name is.
#define NEXT(name) ((__typeof__(&(name)))aw_paths_next(#name))

// The path to use instead, in to where it is another.
const char *aw_paths_moved(const char *path, char to[PATH_MAX]);

void *aw_paths_next(const char *name);

// The fd as it was opened by that path, or not. An entry of the GID table that is not used has an empty file, and
// reading the kernel's is EINVAL: so is then reading this one.
int aw_paths_opened(int fd, const char *path);

#endif
