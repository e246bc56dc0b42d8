// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// port_events: opens the device twice, waits for events as a program with an event loop does, and prints each: the number of its
// context, its name, and what the verbs say of the port by then. Runs until it is killed.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	CONTEXTS = 2,
};

static struct ibv_context *contexts[CONTEXTS];

static void check(bool right, const char *what)
{
	if (right)
		return;
	printf("%s\n", what);
	exit(1);
}

static const char *name_of(enum ibv_event_type type)
{
	switch ((int)type) {
	case IBV_EVENT_PORT_ACTIVE:
		return "PORT_ACTIVE";
	case IBV_EVENT_PORT_ERR:
		return "PORT_ERR";
	case IBV_EVENT_GID_CHANGE:
		return "GID_CHANGE";
	default:
		return "another";
	}
}

static void port_print(void)
{
	static struct ibv_gid_entry entries[256];
	struct ibv_port_attr port;
	ssize_t gids = ibv_query_gid_table(contexts[0], entries, 256, 0);

	check(ibv_query_port(contexts[0], 1, &port) == 0, "no port");
	printf("%s phys %u mtu %d gids %zd\n", port.state == IBV_PORT_ACTIVE ? "active" : "down",
	       port.phys_state, 128 << port.active_mtu, gids);
	fflush(stdout);
}

/* The fd is readable only while there is an event. */
static void event_print(int context)
{
	struct ibv_async_event event;

	check(ibv_get_async_event(contexts[context], &event) == 0, "no event behind the fd");
	check(event.element.port_num == 1, "another port");
	printf("context %d %s ", context, name_of(event.event_type));
	ibv_ack_async_event(&event);
	port_print();
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct pollfd fds[CONTEXTS];

	check(list && list[0], "no device");
	for (int i = 0; i < CONTEXTS; i++) {
		contexts[i] = ibv_open_device(list[0]);
		check(contexts[i] != NULL, "no context");
		check(fcntl(contexts[i]->async_fd, F_SETFL, O_NONBLOCK) == 0, "no flags");
		fds[i] = (struct pollfd){ .fd = contexts[i]->async_fd, .events = POLLIN };
	}
	ibv_free_device_list(list);
	printf("ready ");
	port_print();
	while (poll(fds, CONTEXTS, -1) > 0)
		for (int i = 0; i < CONTEXTS; i++)
			if (fds[i].revents)
				event_print(i);
	return 1;
}
