// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the keeper for a value, or for the socket.
#include "xsock/preload/option_kept.h"

#include <errno.h>
#include <string.h>

#include "xsock/kept.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"

static int failed(int err)
{
	errno = err;
	return err ? -1 : 0;
}

/* One call on the TCP socket. */
struct call {
	int level, name;
	void *value; /* to get */
	socklen_t *len;
	const void *from; /* to set, where there is no len */
	socklen_t from_len;
	int result, err;
};

static void make_call(int tcp, void *arg)
{
	struct call *call = arg;

	call->result = !call->len ? aw_libc()->setsockopt(tcp, call->level, call->name, call->from,
							  call->from_len)
				  : aw_libc()->getsockopt(tcp, call->level, call->name, call->value,
							  call->len);
	call->err = errno;
}

static int get_kept(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_answer answer;
	struct aw_order order;
	int err;

	aw_keeper_begin(&order, AW_ORDER_GET_OPTION);
	order.level = level;
	order.name = name;
	order.len = sizeof(int);
	err = aw_keeper_ask(&order, fd, &answer);
	if (err || answer.error)
		return failed(err ? err : answer.error);
	if (*len > sizeof(int))
		*len = sizeof(int);
	memcpy(value, answer.value, *len);
	return 0;
}

int aw_option_get_kept(int fd, int level, int name, void *value, socklen_t *len)
{
	struct call call = { .level = level, .name = name, .value = value, .len = len };
	int err;

	if (aw_kept_is(level, name))
		return get_kept(fd, level, name, value, len);
	err = aw_keeper_borrow_socket(fd, make_call, &call);
	if (err)
		return failed(err);
	errno = call.err;
	return call.result;
}

/* Where no keeper takes orders of ours, or has it any more, it is as of a connection that is over. */
static int as_set(int err)
{
	return failed(err == ENOTCONN ? 0 : err);
}

static int set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_answer answer;
	struct aw_order order;
	int err;

	aw_keeper_begin(&order, AW_ORDER_SET_OPTION);
	order.level = level;
	order.name = name;
	order.len = len < AW_ORDER_VALUE_MAX ? (int32_t)len : AW_ORDER_VALUE_MAX;
	memcpy(order.value, value, (size_t)order.len);
	err = aw_keeper_ask(&order, fd, &answer);
	return err ? as_set(err) : failed(answer.error);
}

int aw_option_set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct call call = { .level = level, .name = name, .from = value, .from_len = len };
	int err;

	if (aw_kept_is(level, name) || (level == SOL_SOCKET && name == SO_LINGER))
		return set_kept(fd, level, name, value, len);
	err = aw_keeper_borrow_socket(fd, make_call, &call);
	if (err)
		return as_set(err);
	errno = call.err;
	return call.result;
}
