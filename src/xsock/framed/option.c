// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options and ioctls of a FRAMED fd that concern the stream's bytes: FIONREAD and SIOCATMARK,
// SO_OOBINLINE and SO_RCVLOWAT. The record has the program's values of these two options; the
// kernel's socket has the values that the record needs. The functions take the rx half's lock.
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/bridged.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"

/*
 * FPDUs must be received whole, also where a byte in them is urgent: SO_OOBINLINE stays on in the
 * kernel.
 */
static void keep_in_line(int fd)
{
	int on = 1;

	(void)aw_libc()->setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

struct aw_slot_options aw_slot_read_options(int fd)
{
	return (struct aw_slot_options){
		.in_line = aw_sockopt_int(fd, SOL_SOCKET, SO_OOBINLINE, 0),
		.wanted = aw_sockopt_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1),
		.peek_offset = aw_sockopt_int(fd, SOL_SOCKET, SO_PEEK_OFF, -1),
	};
}

void aw_slot_take_options(struct aw_slot *slot, int fd, struct aw_slot_options options)
{
	keep_in_line(fd);
	slot->record.rx.in_line = options.in_line;
	if (options.wanted > 1)
		aw_record_set_wanted(&slot->record, fd, (uint32_t)options.wanted);
}

void aw_slot_give_options(struct aw_slot *slot, int fd, int near)
{
	struct aw_record_rx *rx = &slot->record.rx;
	struct aw_half half;
	int in_line, wanted;

	if (aw_half_enter(&half, slot, &slot->rx_lock, fd) != 0)
		return;
	in_line = rx->in_line;
	wanted = (int)rx->wanted;
	aw_record_set_wanted(&slot->record, fd, 1);
	aw_half_leave(&half);
	(void)aw_libc()->setsockopt(near, SOL_SOCKET, SO_OOBINLINE, &in_line, sizeof(in_line));
	if (wanted > 1)
		(void)aw_libc()->setsockopt(near, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
}

bool aw_framed_pending(int fd, int *count)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	struct aw_half half;
	int saved = errno;
	ssize_t n;

	if (!slot)
		return false;
	*count = 0;
	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return true;
	n = aw_record_pending(&slot->record, fd);
	aw_half_leave(&half);
	if (n == -ENOTSOCK) {
		(void)aw_fdtab_look(fd, NULL);
		return false;
	}
	/* The look has taken TCP's error: the next read returns it. */
	if (n < 0)
		aw_slot_note_failure(slot, n);
	*count = n > 0 ? (int)n : 0;
	errno = saved;
	return true;
}

bool aw_framed_is_at_mark(int fd, int *at_mark)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	struct aw_half half;

	if (!slot)
		return false;
	*at_mark = 0;
	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return true;
	*at_mark = aw_record_is_at_mark(&slot->record, fd);
	aw_half_leave(&half);
	return true;
}

static struct aw_slot *slot_of_option(int fd, int level, int name)
{
	if (level != SOL_SOCKET ||
	    (name != SO_OOBINLINE && name != SO_RCVLOWAT && name != SO_LINGER))
		return NULL;
	return aw_framed_slot(fd);
}

/*
 * Returns the connection's error, which the kernel or an earlier call has found, and clears it. The program has then been told: an
 * end within an FPDU is an end, no other error.
 */
static int take_error(struct aw_slot *slot, int fd, int kernels)
{
	int error = -(int)aw_slot_take_failure(slot, -kernels);
	struct aw_record *record = &slot->record;
	struct aw_half half;

	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) == 0) {
		error = error ? error : record->rx.error;
		record->rx.error = 0;
		record->rx.shut |= aw_record_is_failure(-error);
		aw_half_leave(&half);
	}
	if (aw_half_enter_for(&half, slot, &slot->tx_lock, fd) == 0) {
		error = error ? error : record->tx.error;
		record->tx.error = 0;
		aw_half_leave(&half);
	}
	return error;
}

/* libc's call checks the arguments first. */
bool aw_framed_get_option(int fd, int level, int name, void *value, socklen_t *len)
{
	bool is_error = level == SOL_SOCKET && name == SO_ERROR;
	struct aw_slot *slot = is_error ? aw_framed_slot(fd) : slot_of_option(fd, level, name);
	struct linger linger;
	int number = 0;

	if (!slot || aw_libc()->getsockopt(fd, level, name, value, len) != 0)
		return false;
	if (name == SO_LINGER) {
		if (!aw_bridged_get_linger(slot, &linger))
			return false;
		memcpy(value, &linger, *len < sizeof(linger) ? *len : sizeof(linger));
		return true;
	}
	if (is_error) {
		memcpy(&number, value, *len < sizeof(number) ? *len : sizeof(number));
		number = take_error(slot, fd, number);
	} else {
		number = name == SO_OOBINLINE ? slot->record.rx.in_line
					      : (int)slot->record.rx.wanted;
	}
	memcpy(value, &number, *len < sizeof(number) ? *len : sizeof(number));
	return true;
}

/*
 * Sets the record's value. The kernel's stays on: off, even for a moment, it could cost the stream
 * a byte.
 */
static int set_in_line(struct aw_slot *slot, int fd, const void *value, socklen_t len)
{
	int number;

	if (!value || (int)len < (int)sizeof(number)) /* the kernel returns the right errno */
		return aw_libc()->setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, value, len);
	memcpy(&number, value, sizeof(number));
	keep_in_line(fd);
	slot->record.rx.in_line = number != 0;
	aw_record_set_wanted(&slot->record, fd, slot->record.rx.wanted);
	return 0;
}

/* The kernel checks the value and bounds it by the receive buffer. */
static int set_wanted(struct aw_slot *slot, int fd, const void *value, socklen_t len)
{
	if (aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, value, len) != 0)
		return -1;
	slot->record.rx.lowat = (uint32_t)aw_sockopt_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	aw_record_set_wanted(&slot->record, fd, slot->record.rx.lowat);
	return 0;
}

bool aw_framed_set_option(int fd, int level, int name, const void *value, socklen_t len,
			  int *result)
{
	struct aw_slot *slot = slot_of_option(fd, level, name);
	struct aw_half half;
	struct linger linger;
	int err;

	if (!slot)
		return false;
	if (name == SO_LINGER) {
		if (!value ||
		    (int)len < (int)sizeof(linger)) /* the kernel returns the right errno */
			return false;
		memcpy(&linger, value, sizeof(linger));
		*result = 0;
		return aw_bridged_set_linger(slot, &linger);
	}
	err = aw_half_enter_for(&half, slot, &slot->rx_lock, fd);
	if (err == EBADF)
		return false; /* another thread has bridged fd */
	if (err) {
		errno = err;
		*result = -1;
		return true;
	}
	*result = (name == SO_OOBINLINE ? set_in_line : set_wanted)(slot, fd, value, len);
	err = errno;
	aw_half_leave(&half);
	errno = err;
	return true;
}
