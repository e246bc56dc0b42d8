// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: getsockopt and setsockopt.
#include <anywarp/sockets.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/pair/offer.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/iwarp_option.h"
#include "xsock/preload/option.h"
#include "xsock/process/name.h"

/*
 * Returns whether the kernel's call has failed because another thread has made a pair of fd
 * meanwhile.
 */
static bool was_replaced(int fd)
{
	return (errno == EOPNOTSUPP || errno == ENOPROTOOPT) && aw_fdtab_is_paired(fd);
}

/*
 * Makes fd BRIDGED if it is a pair's end from another process: the program uses an option of TCP's
 * on an fd that the table does not know.
 */
static bool import_foreign(int fd, int level, int name)
{
	return aw_fdtab_state(fd) == AW_FD_NONE &&
	       (level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
		(level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL))) &&
	       aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, 0) == AF_UNIX && aw_name_import(fd);
}

static int get_decided(int fd, int level, int name, void *value, socklen_t *len)
{
	socklen_t room = len ? *len : 0;
	int result, saved = errno;

	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return aw_option_get_bridged(fd, level, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_FRAMED && aw_option_is_zero_copy(level, name))
		return aw_fail_with(ENOPROTOOPT);
	if (aw_framed_get_option(fd, level, name, value, len))
		return 0;
	result = aw_libc()->getsockopt(fd, level, name, value, len);
	if (!len || !(result == 0 ? level == SOL_SOCKET && import_foreign(fd, level, name)
				  : was_replaced(fd) || import_foreign(fd, level, name)))
		return result;
	*len = room;
	errno = saved;
	return aw_option_get_bridged(fd, level, name, value, len);
}

AW_WRAPPER int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_sock *pin;
	int result, err;

	if (aw_first_io(fd, AW_FIRST_POLL, true))
		return -1;
	if (__builtin_expect(level == SOL_IWARP, 0))
		return aw_iwarp_option_get(fd, name, value, len);
	pin = aw_first_io_pin(fd);
	if (!pin)
		return get_decided(fd, level, name, value, len);
	if (aw_option_is_zero_copy(level, name))
		result = aw_fail_with(ENOPROTOOPT);
	else
		result = aw_libc()->getsockopt(fd, level, name, value, len);
	if (result == 0 && level == SOL_SOCKET && name == SO_ERROR) {
		/* TCP may have reported an errno to the library in place of the program. */
		err = aw_first_io_take_error(fd);
		if (err)
			memcpy(value, &err, *len < sizeof(err) ? *len : sizeof(err));
	}
	aw_first_io_unpin(pin);
	return result;
}

static int set_decided(int fd, int level, int name, const void *value, socklen_t len)
{
	int result;

	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return aw_option_set_bridged(fd, level, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_FRAMED && aw_option_is_refused(level, name))
		return aw_fail_with(ENOPROTOOPT);
	if (aw_framed_set_option(fd, level, name, value, len, &result))
		return result;
	result = aw_libc()->setsockopt(fd, level, name, value, len);
	if (result == 0 && level == IPPROTO_TCP && name == TCP_DEFER_ACCEPT)
		aw_offer_refuse(fd);
	if (result == 0 || !(was_replaced(fd) || import_foreign(fd, level, name)))
		return result;
	return aw_option_set_bridged(fd, level, name, value, len);
}

AW_WRAPPER int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_sock *pin;
	int result;

	if (__builtin_expect(level == SOL_IWARP, 0))
		return aw_iwarp_option_set(fd, name, value, len);
	/*
	 * SO_PEEK_OFF would move the looks of a record, too: the proxy process has the connection then, and the pair the
	 * option.
	 */
	if (level == SOL_SOCKET && name == SO_PEEK_OFF) {
		if (aw_fdtab_state(fd) == AW_FD_PENDING)
			(void)aw_first_io_make(fd, AW_FIRST_HAND_OVER, false);
		if (aw_framed_bridge(fd))
			return -1;
	}
	pin = aw_first_io_pin(fd);
	if (!pin)
		return set_decided(fd, level, name, value, len);
	result = aw_libc()->setsockopt(fd, level, name, value, len);
	aw_first_io_unpin(pin);
	return result;
}
