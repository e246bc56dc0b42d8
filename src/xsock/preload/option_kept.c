// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests a value of the proxy process, or the loan of its socket.
#include "xsock/preload/option_kept.h"

#include <errno.h>
#include <string.h>

#include "xsock/base/kept.h"
#include "xsock/base/libc.h"
#include "xsock/process/proxy.h"

/* One getsockopt or setsockopt on the TCP socket. */
struct option_call {
	int level, name;
	void *value; /* for getsockopt */
	socklen_t *len;
	const void *from; /* for setsockopt, when len is NULL */
	socklen_t from_len;
	int result, err;
};

static void make_option_call(int tcp, void *arg)
{
	struct option_call *call = arg;

	call->result = !call->len ? aw_libc()->setsockopt(tcp, call->level, call->name, call->from,
							  call->from_len)
				  : aw_libc()->getsockopt(tcp, call->level, call->name, call->value,
							  call->len);
	call->err = errno;
}

static int get_kept(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_GET_OPTION);
	request.level = level;
	request.name = name;
	request.len = sizeof(int);
	err = aw_proxy_call(&request, fd, &reply);
	if (err || reply.error)
		return aw_fail_with(err ? err : reply.error);
	if (*len > sizeof(int))
		*len = sizeof(int);
	memcpy(value, reply.value, *len);
	return 0;
}

int aw_option_get_kept(int fd, int level, int name, void *value, socklen_t *len)
{
	struct option_call call = { .level = level, .name = name, .value = value, .len = len };
	int err;

	if (aw_kept_is(level, name))
		return get_kept(fd, level, name, value, len);
	err = aw_proxy_borrow_socket(fd, make_option_call, &call);
	if (err)
		return aw_fail_with(err);
	errno = call.err;
	return call.result;
}

/*
 * A socket whose proxy process is gone, or no longer has it, is like one whose connection has
 * ended: setsockopt succeeds.
 */
static int end_set(int err)
{
	return aw_fail_with(err == ENOTCONN ? 0 : err);
}

static int set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_SET_OPTION);
	request.level = level;
	request.name = name;
	request.len = len < AW_REQUEST_VALUE_MAX ? (int32_t)len : AW_REQUEST_VALUE_MAX;
	memcpy(request.value, value, (size_t)request.len);
	err = aw_proxy_call(&request, fd, &reply);
	return err ? end_set(err) : aw_fail_with(reply.error);
}

int aw_option_set_kept(int fd, int level, int name, const void *value, socklen_t len)
{
	struct option_call call = { .level = level, .name = name, .from = value, .from_len = len };
	int err;

	if (aw_kept_is(level, name) || (level == SOL_SOCKET && name == SO_LINGER))
		return set_kept(fd, level, name, value, len);
	err = aw_proxy_borrow_socket(fd, make_option_call, &call);
	if (err)
		return end_set(err);
	errno = call.err;
	return call.result;
}
