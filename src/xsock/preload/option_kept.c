// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the proxy process for a value, or for the socket.
#include "xsock/preload/option_kept.h"

#include <errno.h>
#include <string.h>

#include "xsock/base/kept.h"
#include "xsock/base/libc.h"
#include "xsock/process/proxy.h"

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
	struct aw_reply answer;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_GET_OPTION);
	request.level = level;
	request.name = name;
	request.len = sizeof(int);
	err = aw_proxy_call(&request, fd, &answer);
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
	err = aw_proxy_borrow_socket(fd, make_call, &call);
	if (err)
		return failed(err);
	errno = call.err;
	return call.result;
}

/* Where no proxy process takes orders of ours, or has it any more, it is as of a connection that is over. */
static int as_set(int err)
{
	return failed(err == ENOTCONN ? 0 : err);
}

static int set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_reply answer;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_SET_OPTION);
	request.level = level;
	request.name = name;
	request.len = len < AW_REQUEST_VALUE_MAX ? (int32_t)len : AW_REQUEST_VALUE_MAX;
	memcpy(request.value, value, (size_t)request.len);
	err = aw_proxy_call(&request, fd, &answer);
	return err ? as_set(err) : failed(answer.error);
}

int aw_option_set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct call call = { .level = level, .name = name, .from = value, .from_len = len };
	int err;

	if (aw_kept_is(level, name) || (level == SOL_SOCKET && name == SO_LINGER))
		return set_kept(fd, level, name, value, len);
	err = aw_proxy_borrow_socket(fd, make_call, &call);
	if (err)
		return as_set(err);
	errno = call.err;
	return call.result;
}
