// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // RTLD_NEXT
#include "kernel_tls.h"

#include "base/kernel_tls.h"
#include "crypto/key.h"
#include "crypto/libcrypto.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 1024
#define HEAD 5u
#define TAG 16u
#define CONTENT_MAX 16384u
#define KEY_UPDATE 24

struct kernel_tls kernel_tls;

struct half {
	bool is_set, expired; /* expired: a KeyUpdate has come, and no keys behind it */
	uint16_t cipher;
	uint8_t key[32], iv[12];
	uint64_t number;
};

static struct {
	bool attached;
	struct half sends, receives;
	uint64_t given; /* bytes, to TCP */
	uint8_t waiting[4096];
	size_t waiting_len;
} sockets[FDS_MAX];

static const struct aw_libcrypto *const o = &aw_libcrypto;

static uint64_t number_of(const uint8_t from[8])
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | from[i];
	return number;
}

static void take_keys(struct half *half, const void *info)
{
	const struct tls12_crypto_info_aes_gcm_128 *aes_128 = info;
	const struct tls12_crypto_info_aes_gcm_256 *aes_256 = info;
	const struct tls12_crypto_info_chacha20_poly1305 *chacha = info;

	*half = (struct half){ .is_set = true, .cipher = aes_128->info.cipher_type };
	assert(aes_128->info.version == TLS_1_3_VERSION);
	if (half->cipher == TLS_CIPHER_AES_GCM_128) {
		memcpy(half->key, aes_128->key, sizeof(aes_128->key));
		memcpy(half->iv, aes_128->salt, sizeof(aes_128->salt));
		memcpy(half->iv + sizeof(aes_128->salt), aes_128->iv, sizeof(aes_128->iv));
		half->number = number_of(aes_128->rec_seq);
	} else if (half->cipher == TLS_CIPHER_AES_GCM_256) {
		memcpy(half->key, aes_256->key, sizeof(aes_256->key));
		memcpy(half->iv, aes_256->salt, sizeof(aes_256->salt));
		memcpy(half->iv + sizeof(aes_256->salt), aes_256->iv, sizeof(aes_256->iv));
		half->number = number_of(aes_256->rec_seq);
	} else {
		memcpy(half->key, chacha->key, sizeof(chacha->key));
		memcpy(half->iv, chacha->iv, sizeof(chacha->iv));
		half->number = number_of(chacha->rec_seq);
	}
}

static int set_keys(int fd, int direction, const void *info)
{
	bool sends = direction == TLS_TX;
	struct half *half = sends ? &sockets[fd].sends : &sockets[fd].receives;

	errno = sends ? kernel_tls.sends_errno : kernel_tls.receives_errno;
	if (sends && fd == kernel_tls.refused_fd)
		errno = EINVAL;
	if (!errno && half->is_set && !kernel_tls.changes_keys)
		errno = EBUSY;
	if (errno)
		return -1;
	take_keys(half, info);
	if (sends)
		kernel_tls.sends_set++;
	else
		kernel_tls.receives_set++;
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == IPPROTO_TCP && name == TCP_ULP) {
		errno = kernel_tls.attach_errno;
		if (errno)
			return -1;
		memset(&sockets[fd], 0, sizeof(sockets[fd]));
		sockets[fd].attached = true;
		return 0;
	}
	if (level == AW_SOL_TLS && (name == TLS_TX || name == TLS_RX)) {
		assert(sockets[fd].attached);
		return set_keys(fd, name, value);
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

int close(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		memset(&sockets[fd], 0, sizeof(sockets[fd]));
	return (int)syscall(SYS_close, fd);
}

/* Of keys to send: the number of the next record. */
static int tell_number(int fd, void *value)
{
	struct half *half = &sockets[fd].sends;
	uint8_t *to = half->cipher == TLS_CIPHER_AES_GCM_128
			      ? ((struct tls12_crypto_info_aes_gcm_128 *)value)->rec_seq
		      : half->cipher == TLS_CIPHER_AES_GCM_256
			      ? ((struct tls12_crypto_info_aes_gcm_256 *)value)->rec_seq
			      : ((struct tls12_crypto_info_chacha20_poly1305 *)value)->rec_seq;

	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(half->number >> 8 * (7 - i));
	return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level == AW_SOL_TLS && name == TLS_TX)
		return tell_number(fd, value);
	if (level == IPPROTO_TCP && name == TCP_INFO && fd < FDS_MAX) {
		((struct tcp_info *)value)->tcpi_bytes_acked = sockets[fd].given;
		return 0;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

/* Whatever TCP has been given it has sent, too. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *value;

	va_start(list, request);
	value = va_arg(list, void *);
	va_end(list);
	if (request != SIOCOUTQ)
		return (int)syscall(SYS_ioctl, fd, request, value);
	*(int *)value = 0;
	return 0;
}

static void give(int fd, const uint8_t *octets, size_t len)
{
	assert(syscall(SYS_sendto, fd, octets, len, MSG_NOSIGNAL, NULL, 0) == (long)len);
	sockets[fd].given += len;
}

void kernel_tls_make_room(int fd)
{
	give(fd, sockets[fd].waiting, sockets[fd].waiting_len);
	sockets[fd].waiting_len = 0;
}

static void give_or_keep(int fd, const uint8_t *octets, size_t len)
{
	if (!kernel_tls.is_full) {
		give(fd, octets, len);
		return;
	}
	assert(len <= sizeof(sockets[fd].waiting) - sockets[fd].waiting_len);
	memcpy(sockets[fd].waiting + sockets[fd].waiting_len, octets, len);
	sockets[fd].waiting_len += len;
}

/* Seals or opens a record's text where it lies. False: the tag is wrong. */
static bool pass(struct half *half, bool seals, const uint8_t head[HEAD], uint8_t *text, size_t len,
		 uint8_t tag[TAG])
{
	const EVP_CIPHER *cipher = aw_libcrypto_cipher(
		half->cipher == TLS_CIPHER_AES_GCM_128	 ? AW_SUITE_AES_128_GCM_SHA256
		: half->cipher == TLS_CIPHER_AES_GCM_256 ? AW_SUITE_AES_256_GCM_SHA384
							 : AW_SUITE_CHACHA20_POLY1305_SHA256);
	EVP_CIPHER_CTX *ctx = o->EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int done;
	bool right;

	memcpy(nonce, half->iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[11 - i] ^= (uint8_t)(half->number >> 8 * i);
	assert(ctx && o->EVP_CipherInit_ex(ctx, cipher, NULL, half->key, nonce, seals) == 1);
	assert(o->EVP_CipherUpdate(ctx, NULL, &done, head, HEAD) == 1);
	assert(o->EVP_CipherUpdate(ctx, text, &done, text, (int)len) == 1);
	if (!seals)
		o->EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, tag);
	right = o->EVP_CipherFinal_ex(ctx, text + len, &done) == 1;
	if (seals)
		o->EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag);
	o->EVP_CIPHER_CTX_free(ctx);
	half->number++;
	return right;
}

static void send_record(int fd, uint8_t type, const uint8_t *content, size_t len)
{
	uint8_t record[HEAD + CONTENT_MAX + 1 + TAG] = { 23, 3, 3 };
	size_t sealed = len + 1 + TAG;

	record[3] = (uint8_t)(sealed >> 8);
	record[4] = (uint8_t)sealed;
	memcpy(record + HEAD, content, len);
	record[HEAD + len] = type;
	(void)pass(&sockets[fd].sends, true, record, record + HEAD, len + 1,
		   record + HEAD + len + 1);
	give_or_keep(fd, record, HEAD + sealed);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	uint8_t content[CONTENT_MAX], type = 23;
	size_t len = 0;

	if (fd >= FDS_MAX || !sockets[fd].sends.is_set)
		return syscall(SYS_sendmsg, fd, msg, flags);
	if (msg->msg_controllen > 0)
		type = *CMSG_DATA(CMSG_FIRSTHDR(msg));
	/* A short send is none that a caller may not expect. */
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t part = msg->msg_iov[i].iov_len;

		if (part > CONTENT_MAX - len)
			part = CONTENT_MAX - len;
		memcpy(content + len, msg->msg_iov[i].iov_base, part);
		len += part;
	}
	send_record(fd, type, content, len);
	return (ssize_t)len;
}

ssize_t send(int fd, const void *from, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)from, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd < FDS_MAX && sockets[fd].sends.is_set)
		return sendmsg(fd, &msg, flags);
	return syscall(SYS_sendto, fd, from, len, flags, NULL, 0);
}

/* One record. What is not there as a whole is not there. */
static ssize_t receive_record(int fd, struct half *half, struct msghdr *msg)
{
	uint8_t record[HEAD + CONTENT_MAX + 256];
	struct cmsghdr *head;
	ssize_t n = recv(fd, record, sizeof(record), MSG_PEEK | MSG_DONTWAIT);
	size_t size = n >= (ssize_t)HEAD ? HEAD + ((size_t)record[3] << 8 | record[4]) : HEAD, len;

	if (n <= 0)
		return n;
	if ((size_t)n < size) {
		errno = EAGAIN;
		return -1;
	}
	assert(recv(fd, record, size, 0) == (ssize_t)size);
	len = size - HEAD - TAG;
	if (!pass(half, false, record, record + HEAD, len, record + size - TAG)) {
		errno = EBADMSG;
		return -1;
	}
	while (record[HEAD + len - 1] == 0)
		len--;
	len--;
	assert(len <= msg->msg_iov->iov_len);
	memcpy(msg->msg_iov->iov_base, record + HEAD, len);
	half->expired = record[HEAD + len] == 22 && record[HEAD] == KEY_UPDATE;
	head = CMSG_FIRSTHDR(msg);
	head->cmsg_level = AW_SOL_TLS;
	head->cmsg_type = TLS_GET_RECORD_TYPE;
	head->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(head) = record[HEAD + len];
	return (ssize_t)len;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (fd >= FDS_MAX || !sockets[fd].receives.is_set)
		return syscall(SYS_recvmsg, fd, msg, flags);
	if (!sockets[fd].receives.expired)
		return receive_record(fd, &sockets[fd].receives, msg);
	errno = EKEYEXPIRED;
	return -1;
}
