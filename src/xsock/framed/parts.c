// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks at the fd's next FPDU, with the lock of the rx half.
#include "xsock/framed/parts.h"

#include <errno.h>

#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"

static bool has_part_alone(int fd)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	int saved = errno;
	struct aw_half half;
	bool alone, faulty;

	/* This process has yet to follow to the pair that slot->given tells of. */
	if (!slot || aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return false;
	alone = !slot->given && !aw_record_is_readable(&slot->record, fd);
	faulty = slot->record.rx.fault != AW_OK;
	aw_half_leave(&half);
	if (faulty)
		aw_slot_send_terminate(slot, fd);
	errno = saved;
	return alone;
}

int aw_parts_hide_poll(struct pollfd *fds, nfds_t count)
{
	const short in = POLLIN | POLLRDNORM;
	int hidden = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (!(fds[i].revents & in) || fds[i].revents & (POLLERR | POLLHUP | POLLNVAL) ||
		    !has_part_alone(fds[i].fd))
			continue;
		fds[i].revents &= ~in;
		hidden += !fds[i].revents;
	}
	return hidden;
}

int aw_parts_hide_select(fd_set *in, int limit)
{
	int hidden = 0;

	for (int fd = 0; in && fd < limit; fd++) {
		if (!FD_ISSET(fd, in) || !has_part_alone(fd))
			continue;
		FD_CLR(fd, in);
		hidden++;
	}
	return hidden;
}
