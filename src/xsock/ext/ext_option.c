// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TCP options of an extended socket, and SO_ERROR.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

int aw_ext_get_option(ino_t ino, int level, int name, void *value, socklen_t *len)
{
	struct aw_ext *ext = aw_ext_find(ino);
	int result = 0, error;

	if (!ext)
		return aw_ext_fail(ENOTCONN);
	pthread_mutex_lock(&ext->lock);
	if (level == SOL_SOCKET && name == SO_ERROR) {
		/* The errno that the connection ended with is returned once, as TCP does. */
		error = ext->error_returned || ext->error == ENOTCONN ? 0 : ext->error;
		ext->error_returned = ext->error_returned || error;
		*len = MIN(*len, sizeof(error));
		memcpy(value, &error, *len);
	} else if (ext->tcp < 0) {
		result = aw_ext_fail(ENOTCONN);
	} else {
		result = getsockopt(ext->tcp, level, name, value, len);
	}
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return result;
}

int aw_ext_set_option(ino_t ino, int level, int name, const void *value, socklen_t len)
{
	struct aw_ext *ext = aw_ext_find(ino);
	int result, number;

	if (!ext)
		return aw_ext_fail(ENOTCONN);
	pthread_mutex_lock(&ext->lock);
	if (ext->tcp < 0) {
		result = aw_ext_fail(ENOTCONN);
	} else {
		if (level == IPPROTO_TCP && name == TCP_NODELAY && !ext->pump_ended &&
		    len >= sizeof(number)) {
			memcpy(&number, value, sizeof(number));
			aw_xs_ep_set_nodelay(ext->ep, number != 0);
		}
		result = setsockopt(ext->tcp, level, name, value, len);
	}
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return result;
}
