// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options and ioctls of a framed fd that are about the stream's bytes: FIONREAD and SO_RCVLOWAT. The record
// has the program's value of the latter; the kernel's socket has the one that the record needs.
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/preload/libc.h"

static int get_number(int fd, int name, int otherwise)
{
	int value = otherwise;
	socklen_t len = sizeof(value);

	(void)aw_libc()->getsockopt(fd, SOL_SOCKET, name, &value, &len);
	return value;
}

struct aw_slot_options aw_slot_read_options(int fd)
{
	return (struct aw_slot_options){
		.wanted = get_number(fd, SO_RCVLOWAT, 1),
	};
}

void aw_slot_take_options(struct aw_slot *slot, int fd, struct aw_slot_options options)
{
	if (options.wanted > 1)
		aw_record_set_wanted(&slot->record, &aw_slot_calls, fd, (uint32_t)options.wanted);
}

bool aw_framed_pending(int fd, int *count)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	struct aw_half half;
	int queued = 0;
	ssize_t n;

	if (!slot)
		return false;
	*count = 0;
	if (aw_libc()->ioctl(fd, FIONREAD, &queued) != 0 ||
	    aw_half_enter(&half, slot, &slot->rx_lock) != 0)
		return true;
	n = aw_record_pending(&slot->record, &aw_slot_calls, fd, (size_t)queued);
	aw_half_leave(&half);
	*count = n > 0 ? (int)n : 0;
	return true;
}

static struct aw_slot *slot_of_option(int fd, int level, int name)
{
	if (level != SOL_SOCKET || name != SO_RCVLOWAT)
		return NULL;
	return aw_framed_slot(fd);
}

/* The kernel judges the arguments. */
bool aw_framed_get_option(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_slot *slot = slot_of_option(fd, level, name);
	int number;

	if (!slot || aw_libc()->getsockopt(fd, level, name, value, len) != 0)
		return false;
	number = (int)slot->record.rx.wanted;
	memcpy(value, &number, *len < sizeof(number) ? *len : sizeof(number));
	return true;
}

/* The kernel judges the value, and bounds it by the receive buffer. */
static int set_wanted(struct aw_slot *slot, int fd, const void *value, socklen_t len)
{
	if (aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, value, len) != 0)
		return -1;
	slot->record.rx.lowat = (uint32_t)get_number(fd, SO_RCVLOWAT, 1);
	aw_record_set_wanted(&slot->record, &aw_slot_calls, fd, slot->record.rx.lowat);
	return 0;
}

bool aw_framed_set_option(int fd, int level, int name, const void *value, socklen_t len,
			  int *result)
{
	struct aw_slot *slot = slot_of_option(fd, level, name);
	struct aw_half half;
	int err;

	if (!slot)
		return false;
	err = aw_half_enter(&half, slot, &slot->rx_lock);
	if (err) {
		errno = err;
		*result = -1;
		return true;
	}
	*result = set_wanted(slot, fd, value, len);
	err = errno;
	aw_half_leave(&half);
	errno = err;
	return true;
}
