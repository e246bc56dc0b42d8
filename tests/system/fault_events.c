// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that waits for two asynchronous events of the first device, and prints their names: by poll(2) on async_fd with the
// argument "poll", or else in ibv_get_async_event. With "crash" it waits for none, and uses a PD that it may not have.
#include <err.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	int polls = argc > 1 && !strcmp(argv[1], "poll");

	if (!context)
		errx(1, "no device");
	if (polls && fcntl(context->async_fd, F_SETFL, O_NONBLOCK) != 0)
		err(1, "fcntl");
	if (argc > 1 && !strcmp(argv[1], "crash")) {
		struct ibv_pd *pd = ibv_alloc_pd(context);

		printf("%u\n", pd->handle); /* the place of the crash */
		return ibv_dealloc_pd(pd) || ibv_close_device(context);
	}
	for (int i = 0; i < 2; i++) {
		struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
		struct ibv_async_event event;

		if (polls && (ibv_get_async_event(context, &event) == 0 || poll(&fd, 1, -1) != 1))
			errx(1, "an event that nobody waited for");
		if (ibv_get_async_event(context, &event) != 0)
			err(1, "ibv_get_async_event");
		printf("%s\n", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	ibv_close_device(context);
	ibv_free_device_list(devices);
	return 0;
}
