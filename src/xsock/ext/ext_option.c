// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options that an extended socket's program asks of TCP, and why its connection has ended.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Told once, as TCP does it. The lock is held. */
static int take_error(struct aw_ext *ext)
{
	int error = ext->error == ENOTCONN ? 0 : ext->error;

	if (error && ext->error_told)
		error = 0;
	ext->error_told = ext->error_told || error;
	return error;
}

static int give(int number, void *value, socklen_t *len)
{
	if (*len > sizeof(number))
		*len = sizeof(number);
	memcpy(value, &number, *len);
	return 0;
}

static int get(struct aw_ext *ext, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_ERROR)
		return give(take_error(ext), value, len);
	return ext->tcp < 0 ? fail(ENOTCONN) : getsockopt(ext->tcp, level, name, value, len);
}

static int set(struct aw_ext *ext, int level, int name, const void *value, socklen_t len)
{
	int number;

	if (ext->tcp < 0)
		return fail(ENOTCONN);
	if (level == IPPROTO_TCP && name == TCP_NODELAY && !ext->over && len >= sizeof(number)) {
		memcpy(&number, value, sizeof(number));
		aw_xs_ep_set_nodelay(ext->ep, number != 0);
	}
	return setsockopt(ext->tcp, level, name, value, len);
}

int aw_ext_get_option(ino_t ino, int level, int name, void *value, socklen_t *len)
{
	struct aw_ext *ext = aw_ext_find(ino);
	int result;

	if (!ext)
		return fail(ENOTCONN);
	pthread_mutex_lock(&ext->lock);
	result = get(ext, level, name, value, len);
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return result;
}

int aw_ext_set_option(ino_t ino, int level, int name, const void *value, socklen_t len)
{
	struct aw_ext *ext = aw_ext_find(ino);
	int result;

	if (!ext)
		return fail(ENOTCONN);
	pthread_mutex_lock(&ext->lock);
	result = set(ext, level, name, value, len);
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return result;
}
