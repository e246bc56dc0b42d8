// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Other proxy processes are found by their doors, in directories of our own user's: no other user's process is told of an
// address, or waited for.
#include "xsock/preload/release.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "xsock/base/libc.h"
#include "xsock/base/place.h"
#include "xsock/process/proxy.h"

#define PROXYS_MAX 256 /* in a directory */
#define WAIT_MS \
	1000 /* a busy machine's proxy process has its turn within that; one that is stopped has none */
#define STEP_MS 1 /* an idle machine's proxy process is done before the first step is over */

static bool begin(struct aw_request *request, const struct sockaddr *addr, socklen_t len)
{
	aw_request_init(request, AW_REQUEST_RELEASE);
	if (!addr || len > sizeof(request->local))
		return false;
	memcpy(&request->local, addr, len);
	return true;
}

bool aw_release_ours(const struct sockaddr *addr, socklen_t len)
{
	struct aw_reply answer;
	struct aw_request request;

	return aw_proxy_control() >= 0 && begin(&request, addr, len) &&
	       aw_proxy_call(&request, -1, &answer) == 0;
}

static bool tell(int from, const char *directory, const char *door,
		 const struct aw_request *request)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	return snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", directory, door) <
		       (int)sizeof(to.sun_path) &&
	       aw_libc()->sendto(from, request, sizeof(*request), MSG_DONTWAIT | MSG_NOSIGNAL,
				 (struct sockaddr *)&to, sizeof(to)) >= 0;
}

/* How many have taken the order. */
static int tell_all_in(int from, const char *directory, const struct aw_request *request)
{
	DIR *dir = aw_place_is_ours(directory) ? opendir(directory) : NULL;
	struct dirent *entry;
	int told = 0;

	while (dir && told < PROXYS_MAX && (entry = readdir(dir)))
		if (strncmp(entry->d_name, AW_PLACE_DOOR, strlen(AW_PLACE_DOOR)) == 0)
			told += tell(from, directory, entry->d_name, request);
	if (dir)
		closedir(dir);
	return told;
}

/* A proxy process may have its directory in another XDG_RUNTIME_DIR than ours: the usual one. */
static void list_directories(glob_t *found)
{
	static const char *const patterns[] = { "/run/user/%u/" AW_PLACE_NAME,
						"/tmp/" AW_PLACE_NAME, "/tmp/" AW_PLACE_NAME "-*" };
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned user = geteuid();
	char path[PATH_MAX];
	int flags = 0;

	if (runtime &&
	    snprintf(path, sizeof(path), "%s/" AW_PLACE_NAME, runtime, user) < (int)sizeof(path)) {
		(void)glob(path, flags, NULL, found);
		flags = GLOB_APPEND;
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++, flags = GLOB_APPEND) {
		snprintf(path, sizeof(path), patterns[i], user, user);
		(void)glob(path, flags, NULL, found);
	}
}

/* A proxy process takes an order out of its queue once it has let go of the port: then it is not the sender's any more. */
static void await_proxys(int from)
{
	int queued = 0;

	for (int ms = 0; ms < WAIT_MS; ms += STEP_MS) {
		if (aw_libc()->ioctl(from, SIOCOUTQ, &queued) != 0 || queued == 0)
			return;
		(void)aw_libc()->poll(NULL, 0, STEP_MS);
	}
}

bool aw_release_others(const struct sockaddr *addr, socklen_t len)
{
	int from = aw_libc()->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), told = 0;
	struct aw_request request;
	glob_t found;

	if (from < 0)
		return false;
	if (begin(&request, addr, len)) {
		list_directories(&found);
		for (size_t i = 0; i < found.gl_pathc; i++)
			told += tell_all_in(from, found.gl_pathv[i], &request);
		globfree(&found);
	}
	if (told)
		await_proxys(from);
	aw_libc()->close(from);
	return told > 0;
}
