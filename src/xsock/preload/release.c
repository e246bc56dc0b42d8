// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds other proxy processes by their sockets, door.PID, in directories of the same user: no
// process of another user learns an address, or is waited for.
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

#define PROXIES_MAX 256 /* proxy processes in a directory */
/* A proxy process on a busy machine runs within that time; one that is stopped does not answer. */
#define WAIT_MS 1000
#define STEP_MS 1 /* a proxy process on an idle machine has answered by then */

static bool fill_request(struct aw_request *request, const struct sockaddr *addr, socklen_t len)
{
	aw_request_init(request, AW_REQUEST_RELEASE);
	if (!addr || len > sizeof(request->local))
		return false;
	memcpy(&request->local, addr, len);
	return true;
}

bool aw_release_ours(const struct sockaddr *addr, socklen_t len)
{
	struct aw_reply reply;
	struct aw_request request;

	return fill_request(&request, addr, len) && aw_proxy_call(&request, -1, &reply) == 0;
}

static bool send_to_door(int from, const char *directory, const char *door,
			 const struct aw_request *request)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	return snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", directory, door) <
		       (int)sizeof(to.sun_path) &&
	       aw_libc()->sendto(from, request, sizeof(*request), MSG_DONTWAIT | MSG_NOSIGNAL,
				 (struct sockaddr *)&to, sizeof(to)) >= 0;
}

/* Sends the request to each proxy process of a directory. Returns how many have received it. */
static int send_to_all(int from, const char *directory, const struct aw_request *request)
{
	DIR *dir = aw_place_is_ours(directory) ? opendir(directory) : NULL;
	struct dirent *entry;
	int sent = 0;

	while (dir && sent < PROXIES_MAX && (entry = readdir(dir)))
		if (strncmp(entry->d_name, AW_PLACE_DOOR, strlen(AW_PLACE_DOOR)) == 0)
			sent += send_to_door(from, directory, entry->d_name, request);
	if (dir)
		closedir(dir);
	return sent;
}

/*
 * Lists the directories that the proxy processes of this user may have: XDG_RUNTIME_DIR may differ
 * between programs, so the usual places are listed as well.
 */
static void list_directories(glob_t *found)
{
	static const char *const patterns[] = { "/run/user/%u/" AW_PLACE_NAME,
						"/tmp/" AW_PLACE_NAME, "/tmp/" AW_PLACE_NAME "-*" };
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
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

/*
 * Waits until all proxy processes have read the request: a proxy process reads it from its queue
 * when it has released the port, and until then SIOCOUTQ counts its bytes as the sender's.
 */
static void await_proxies(int from)
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
	int from = aw_libc()->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), sent = 0;
	struct aw_request request;
	glob_t found;

	if (from < 0)
		return false;
	if (fill_request(&request, addr, len)) {
		list_directories(&found);
		for (size_t i = 0; i < found.gl_pathc; i++)
			sent += send_to_all(from, found.gl_pathv[i], &request);
		globfree(&found);
	}
	if (sent)
		await_proxies(from);
	aw_libc()->close(from);
	return sent > 0;
}
