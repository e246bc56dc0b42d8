// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The system calls that a record makes, by libc's own functions, and the robust lock of a half.
#include "xsock/framed/calls.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "crypto/libcrypto.h"
#include "xsock/base/libc.h"
#include "xsock/framed/cipher.h"
#include "xsock/stream/msg.h"

static ssize_t call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return aw_libc()->recvmsg(fd, msg, flags);
}

static ssize_t call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return aw_libc()->sendmsg(fd, msg, flags);
}

static int call_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return aw_libc()->getsockopt(fd, level, name, value, len);
}

static int call_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return aw_libc()->setsockopt(fd, level, name, value, len);
}

static int call_shutdown(int fd, int how)
{
	return aw_libc()->shutdown(fd, how);
}

static int call_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return aw_libc()->poll(fds, count, timeout_ms);
}

static int call_ioctl(int fd, unsigned long request, int *value)
{
	return aw_libc()->ioctl(fd, request, value);
}

static bool is_record(const uint8_t *data, size_t len, bool sealed)
{
	const uint8_t bits = AW_XS_EXT_RECORD | (sealed ? AW_XS_EXT_RECORD_TLS : 0);
	struct aw_xs_hello hello;

	return aw_xs_hello_get(data, len, &hello) && (hello.ext & bits) == bits;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = call_recvmsg,
	.sendmsg = call_sendmsg,
	.getsockopt = call_getsockopt,
	.setsockopt = call_setsockopt,
	.shutdown = call_shutdown,
	.poll = call_poll,
	.ioctl = call_ioctl,
	.is_record = is_record,
	.cipher = &aw_cipher,
};

int aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd, const struct timespec *by)
{
	int err = by ? pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, by)
		     : pthread_mutex_lock(lock);

	if (err == EOWNERDEAD) {
		/*
		 * A process was killed in the half. TCP tells how much that process has sent. Bytes that it has read may have
		 * been in its own memory: then the connection is broken.
		 */
		pthread_mutex_consistent(lock);
		if (lock != &slot->tx_lock || !aw_record_recover(&slot->record, fd))
			atomic_store(&slot->broken, true);
	} else if (err) {
		return err;
	}
	if (__builtin_expect(atomic_load_explicit(&slot->broken, memory_order_relaxed), 0))
		err = ECONNRESET;
	else if (aw_key_is_on(&slot->record.tx.key) && !aw_libcrypto_load(NULL))
		err = ENOMEM;
	else
		return 0;
	pthread_mutex_unlock(lock);
	return err;
}
