// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/kernel_tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 1000 /* where something drops what this host sends to itself */

_Static_assert(TLS_TX == (int)AW_KERNEL_TLS_SENDS && TLS_RX == (int)AW_KERNEL_TLS_RECEIVES &&
		       TLS_SET_RECORD_TYPE == AW_KERNEL_TLS_SET_TYPE &&
		       TLS_GET_RECORD_TYPE == AW_KERNEL_TLS_GET_TYPE,
	       "linux/tls.h's numbers");
_Static_assert(TLS_CIPHER_AES_GCM_128_SALT_SIZE + TLS_CIPHER_AES_GCM_128_IV_SIZE ==
			       AW_KERNEL_TLS_IV &&
		       TLS_CIPHER_CHACHA20_POLY1305_IV_SIZE == AW_KERNEL_TLS_IV,
	       "the nonce of TLS 1.3 has one length");

enum {
	AES_128_GCM_SHA256 = 0x1301,
	AES_256_GCM_SHA384 = 0x1302,
	CHACHA20_POLY1305_SHA256 = 0x1303,
};

/* AES-GCM's nonce is in two parts there, of which the first is the salt. */
union info {
	struct tls_crypto_info head;
	struct tls12_crypto_info_aes_gcm_128 aes_128;
	struct tls12_crypto_info_aes_gcm_256 aes_256;
	struct tls12_crypto_info_chacha20_poly1305 chacha;
};

static socklen_t info_len(uint16_t suite)
{
	switch (suite) {
	case AES_128_GCM_SHA256:
		return sizeof(struct tls12_crypto_info_aes_gcm_128);
	case AES_256_GCM_SHA384:
		return sizeof(struct tls12_crypto_info_aes_gcm_256);
	case CHACHA20_POLY1305_SHA256:
		return sizeof(struct tls12_crypto_info_chacha20_poly1305);
	default:
		return 0;
	}
}

static uint16_t cipher_of(uint16_t suite)
{
	switch (suite) {
	case AES_128_GCM_SHA256:
		return TLS_CIPHER_AES_GCM_128;
	case AES_256_GCM_SHA384:
		return TLS_CIPHER_AES_GCM_256;
	default:
		return TLS_CIPHER_CHACHA20_POLY1305;
	}
}

static void put_number(uint8_t to[8], uint64_t number)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(number >> 8 * (7 - i));
}

static void fill_info(union info *info, const struct aw_kernel_tls_keys *keys)
{
	const uint8_t *iv = keys->iv;

	memset(info, 0, sizeof(*info));
	info->head.version = TLS_1_3_VERSION;
	info->head.cipher_type = cipher_of(keys->suite);
	switch (keys->suite) {
	case AES_128_GCM_SHA256:
		memcpy(info->aes_128.salt, iv, sizeof(info->aes_128.salt));
		memcpy(info->aes_128.iv, iv + sizeof(info->aes_128.salt), sizeof(info->aes_128.iv));
		memcpy(info->aes_128.key, keys->key, sizeof(info->aes_128.key));
		put_number(info->aes_128.rec_seq, keys->number);
		break;
	case AES_256_GCM_SHA384:
		memcpy(info->aes_256.salt, iv, sizeof(info->aes_256.salt));
		memcpy(info->aes_256.iv, iv + sizeof(info->aes_256.salt), sizeof(info->aes_256.iv));
		memcpy(info->aes_256.key, keys->key, sizeof(info->aes_256.key));
		put_number(info->aes_256.rec_seq, keys->number);
		break;
	default:
		memcpy(info->chacha.iv, iv, sizeof(info->chacha.iv));
		memcpy(info->chacha.key, keys->key, sizeof(info->chacha.key));
		put_number(info->chacha.rec_seq, keys->number);
		break;
	}
}

int aw_kernel_tls_attach(int fd)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0 ? 0 : errno;
}

int aw_kernel_tls_set(int fd, enum aw_kernel_tls_option direction,
		      const struct aw_kernel_tls_keys *keys)
{
	union info info;
	int err = 0;

	if (info_len(keys->suite) == 0)
		return EINVAL;
	fill_info(&info, keys);
	if (setsockopt(fd, AW_SOL_TLS, (int)direction, &info, info_len(keys->suite)) != 0)
		err = errno;
	explicit_bzero(&info, sizeof(info));
	return err;
}

void aw_kernel_tls_expect_no_pad(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, AW_SOL_TLS, AW_KERNEL_TLS_NO_PAD, &on, sizeof(on));
}

static const uint8_t *number_in(const union info *info, uint16_t suite)
{
	switch (suite) {
	case AES_128_GCM_SHA256:
		return info->aes_128.rec_seq;
	case AES_256_GCM_SHA384:
		return info->aes_256.rec_seq;
	default:
		return info->chacha.rec_seq;
	}
}

bool aw_kernel_tls_next(int fd, uint16_t suite, uint64_t *number)
{
	union info info = { 0 };
	socklen_t len = info_len(suite);
	bool told = len > 0 && getsockopt(fd, AW_SOL_TLS, TLS_TX, &info, &len) == 0 &&
		    len == info_len(suite);

	if (told) {
		const uint8_t *from = number_in(&info, suite);

		*number = 0;
		for (int i = 0; i < 8; i++)
			*number = *number << 8 | from[i];
	}
	explicit_bzero(&info, sizeof(info));
	return told;
}

/* Acknowledgements that come between the two questions leave the sum too small, and never too large. */
bool aw_kernel_tls_given(int fd, uint64_t *bytes)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int waiting = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) ||
	    ioctl(fd, SIOCOUTQ, &waiting) != 0)
		return false;
	*bytes = info.tcpi_bytes_acked + (uint64_t)waiting;
	return true;
}

/* A socket that is its own peer; -1: there is none to be had. */
static int connect_to_self(void)
{
	struct sockaddr_in self = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger none = { .l_onoff = 1 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(self);

	if (fd < 0)
		return -1;
	/* So that no port stays in TIME_WAIT. */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	if (bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&self, &len) == 0 &&
	    (connect(fd, (struct sockaddr *)&self, sizeof(self)) == 0 ||
	     (errno == EINPROGRESS && poll(&pollfd, 1, CONNECT_MS) == 1 &&
	      pollfd.revents == POLLOUT)))
		return fd;
	close(fd);
	return -1;
}

static void ask(int fd, struct aw_kernel_tls *found)
{
	const struct aw_kernel_tls_keys keys = { .suite = AES_128_GCM_SHA256 };
	int err = aw_kernel_tls_attach(fd);

	if (err == ENOENT) {
		snprintf(
			found->why, sizeof(found->why),
			"this kernel has none, or not loaded: 'modprobe tls' as root, for a kernel with "
			"CONFIG_TLS");
		return;
	}
	if (!err)
		err = aw_kernel_tls_set(fd, AW_KERNEL_TLS_SENDS, &keys);
	if (err) {
		snprintf(found->why, sizeof(found->why), "the kernel refuses it: %s",
			 strerror(err));
		return;
	}
	found->has = true;
	found->changes_keys = aw_kernel_tls_set(fd, AW_KERNEL_TLS_SENDS, &keys) == 0;
}

void aw_kernel_tls_ask(struct aw_kernel_tls *found)
{
	int fd = connect_to_self();

	*found = (struct aw_kernel_tls){ .has = false };
	if (fd < 0) {
		snprintf(
			found->why, sizeof(found->why),
			"the kernel cannot be asked, for 127.0.0.1 cannot be connected to: 'ip link set "
			"lo up'");
		return;
	}
	ask(fd, found);
	close(fd);
}
