// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record that another process has written, with any numbers in it: what is judged sound harms nobody but its own connection. No byte
// beyond the record's and the program's buffers is read or written, and every call ends.
#include "fuzz.h"

#include "record/record.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#define STEPS_MAX 40
#define ROOM_MAX 3000u
#define GUARD 0xa5

static struct aw_record record;
static struct bytes bytes; /* of the input: also what the kernel and the peer answer */

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t got = 0;

	(void)fd;
	(void)flags;
	for (size_t i = 0; i < (size_t)msg->msg_iovlen && bytes.left > 0; i++) {
		size_t n = msg->msg_iov[i].iov_len < bytes.left ? msg->msg_iov[i].iov_len
								: bytes.left;

		memcpy(msg->msg_iov[i].iov_base, bytes.p, n);
		bytes.p += n;
		bytes.left -= n;
		got += (ssize_t)n;
	}
	errno = EAGAIN;
	return got ? got : bytes_u8(&bytes) % 2 ? 0 : -1;
}

/* Takes a part. */
static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static volatile uint8_t sum;
	size_t len = 0;

	(void)fd;
	(void)flags;
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		const uint8_t *piece = msg->msg_iov[i].iov_base;

		for (size_t k = 0; k < msg->msg_iov[i].iov_len; k++)
			sum = (uint8_t)(sum + piece[k]);
		len += msg->msg_iov[i].iov_len;
	}
	errno = EAGAIN;
	return bytes_bool(&bytes) && len > 0 ? (ssize_t)(1 + bytes_u16(&bytes) % len) : -1;
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t *memory = value;

	(void)fd;
	(void)level;
	FUZZ_CHECK(name == SO_MEMINFO && *len == SK_MEMINFO_VARS * sizeof(*memory));
	memory[SK_MEMINFO_SNDBUF] = 16u * bytes_u16(&bytes);
	return 0;
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd, (void)level, (void)name, (void)value, (void)len;
	return 0;
}

static int fake_shutdown(int fd, int how)
{
	(void)fd, (void)how;
	return 0;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	FUZZ_CHECK(count == 1 && timeout_ms == 0);
	fds->revents = bytes_bool(&bytes) ? fds->events : 0;
	return fds->revents != 0;
}

static int fake_ioctl(int fd, unsigned long request, int *answer)
{
	(void)fd;
	*answer = request == FIONREAD ? bytes_u16(&bytes) : bytes_bool(&bytes);
	return 0;
}

uint32_t __wrap_aw_crc32c(uint32_t crc, const void *data, size_t len);

/* The right CRC is zero: what comes when the input is used up. */
uint32_t __wrap_aw_crc32c(uint32_t crc, const void *data, size_t len)
{
	(void)crc, (void)data, (void)len;
	return UINT32_MAX;
}

uint32_t __wrap_aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

uint32_t __wrap_aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return __wrap_aw_crc32c(crc, src, len);
}

static bool is_record(const uint8_t *data, size_t len, bool sealed)
{
	(void)sealed;
	return len > 0 && data[0] % 2;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.sendmsg = fake_sendmsg,
	.getsockopt = fake_getsockopt,
	.setsockopt = fake_setsockopt,
	.shutdown = fake_shutdown,
	.poll = fake_poll,
	.ioctl = fake_ioctl,
	.is_record = is_record,
};

/* Writes as many bytes of the input as there are, at the most len. */
static void write_any(void *to, size_t len)
{
	uint8_t *at = to;

	for (size_t i = 0; i < len; i++)
		at[i] = bytes_u8(&bytes);
}

/* All numbers, and the beginning of what is in the buffers. */
static void make_foreign(void)
{
	memset(&record, 0, sizeof(record));
	write_any(&record, offsetof(struct aw_record, rx.bytes));
	write_any(record.rx.bytes, 64);
	write_any(&record.tx, offsetof(struct aw_record_tx, bytes));
	/* Else hardly any input is sound. */
	record.rx.have %= bytes_bool(&bytes) ? 64 : 2 * sizeof(record.rx.bytes);
	record.tx.rest %= bytes_bool(&bytes) ? 64 : 2 * sizeof(record.tx.bytes);
	record.tx.rest_at %= bytes_bool(&bytes) ? 64 : 2 * sizeof(record.tx.bytes);
	record.rx.error %= 8;
	if (bytes_bool(&bytes))
		record.rx.mark = AW_MARK_NONE;
	if (bytes_bool(&bytes))
		record.rx.held = false;
}

static void use(void)
{
	static uint8_t buffer[ROOM_MAX + 1];
	size_t room = 1 + bytes_u16(&bytes) % ROOM_MAX, half = room / 2;
	struct iovec iov[] = { { buffer, half }, { buffer + half, room - half } };
	ssize_t n = 0;
	size_t due;

	memset(buffer, GUARD, sizeof(buffer));
	switch (bytes_u8(&bytes) % 8) {
	case 0:
		n = aw_record_peek(&record, 0, iov, 2, bytes_bool(&bytes) ? &due : NULL);
		break;
	case 1:
		n = aw_record_send(&record, 0, iov, 2, bytes_bool(&bytes) ? MSG_OOB : 0);
		break;
	case 2:
		n = aw_record_receive_urgent(&record, 0, buffer, 0);
		break;
	case 3:
		(void)aw_record_pending(&record, 0);
		(void)aw_record_is_at_mark(&record, 0);
		break;
	case 4:
		(void)aw_record_flush(&record, 0);
		aw_record_set_wanted(&record, 0, 1 + bytes_u16(&bytes));
		break;
	default:
		n = aw_record_receive(&record, 0, iov, 2, 0);
		break;
	}
	FUZZ_CHECK(buffer[room] == GUARD && n <= (ssize_t)room);
	if (record.rx.fault)
		aw_record_end(&record, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	bytes = (struct bytes){ data, len };
	make_foreign();
	if (!aw_record_is_sound(&record))
		return 0;
	for (int i = 0; i < STEPS_MAX; i++)
		use();
	return 0;
}
