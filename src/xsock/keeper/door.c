// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The directory keeps other users out. No fd comes in here: to close one may take as long as its sender likes.
#include "xsock/keeper/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "xsock/keeper/listeners.h"
#include "xsock/keeper/status.h"
#include "xsock/order.h"
#include "xsock/place.h"
#include "xsock/preload/say.h"

#define ORDERS_A_TURN 64 /* then connections have theirs */

static struct aw_source door = { .fd = -1 };
static struct aw_loop *loop;
static struct sockaddr_un name = { .sun_family = AF_UNIX };

/* The program that sent an order waits until it is not in our queue any more: it stays there until it is carried out. */
static bool take_order(int fd)
{
	struct aw_order order;
	ssize_t got = recv(fd, &order, sizeof(order), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (got < 0)
		return false;
	if (got == (ssize_t)sizeof(order) && order.magic == AW_ORDER_MAGIC &&
	    order.kind == AW_ORDER_RELEASE)
		aw_listeners_release(&order.local);
	(void)recv(fd, &order, 0, MSG_DONTWAIT);
	return true;
}

static void ready(struct aw_source *source, uint32_t events)
{
	(void)events;
	for (int i = 0; i < ORDERS_A_TURN && take_order(source->fd); i++)
		;
}

void aw_door_open(struct aw_loop *l)
{
	const char *directory = door.fd < 0 ? aw_status_directory() : "";
	int fd = directory[0] ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return;
	loop = l;
	door.ready = ready;
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/" AW_PLACE_DOOR "%d", directory,
		 (int)getpid());
	unlink(name.sun_path);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 &&
	    aw_loop_set(loop, &door, fd, EPOLLIN) == 0)
		return;
	aw_say(AW_SAY_WARN, "no socket at %s: %s", name.sun_path, strerror(errno));
	close(fd);
}

void aw_door_close(void)
{
	int fd = door.fd;

	if (fd < 0)
		return;
	aw_loop_set(loop, &door, -1, 0);
	close(fd);
	unlink(name.sun_path);
}
