// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks a directory.
#include "xsock/base/place.h"

#include <sys/stat.h>
#include <unistd.h>

bool aw_place_is_ours(const char *path)
{
	struct stat dir;

	return lstat(path, &dir) == 0 && S_ISDIR(dir.st_mode) && dir.st_uid == geteuid() &&
	       !(dir.st_mode & 077);
}
