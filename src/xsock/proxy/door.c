// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The directory of the socket keeps other users out. No fd is received here: closing one may take
// as long as its sender likes.
#include "xsock/proxy/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/place.h"
#include "xsock/base/request.h"
#include "xsock/proxy/listeners.h"
#include "xsock/proxy/loop.h"
#include "xsock/proxy/status.h"

#define REQUESTS_A_TURN 64 /* then the loop serves connections */

static struct aw_loop_source door = { .fd = -1 };
static struct sockaddr_un name = { .sun_family = AF_UNIX };

/*
 * Serves one request, and then removes it from the queue: the program that sent it waits until the
 * queue is empty, and so until the request has been served. Returns whether there may be more.
 */
static bool take_request(int fd)
{
	struct aw_request request;
	ssize_t got = recv(fd, &request, sizeof(request), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (got < 0)
		return false;
	if (got == (ssize_t)sizeof(request) && request.magic == AW_REQUEST_MAGIC &&
	    request.kind == AW_REQUEST_RELEASE)
		aw_listeners_release(&request.local);
	(void)recv(fd, &request, 0, MSG_DONTWAIT);
	return true;
}

static void door_ready(struct aw_loop_source *source, uint32_t events)
{
	(void)events;
	for (int i = 0; i < REQUESTS_A_TURN && take_request(source->fd); i++)
		;
}

void aw_door_open(void)
{
	const char *directory = door.fd < 0 ? aw_status_directory() : "";
	int fd = directory[0] ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return;
	door.ready = door_ready;
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/" AW_PLACE_DOOR "%d", directory,
		 (int)getpid());
	unlink(name.sun_path);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 &&
	    aw_loop_set(&door, fd, EPOLLIN) == 0)
		return;
	aw_log(AW_LOG_WARN, "no socket at %s, by which programs ask for a UDP port: %s",
	       name.sun_path, strerror(errno));
	close(fd);
}

void aw_door_close(void)
{
	int fd = door.fd;

	if (fd < 0)
		return;
	aw_loop_set(&door, -1, 0);
	close(fd);
	unlink(name.sun_path);
}
