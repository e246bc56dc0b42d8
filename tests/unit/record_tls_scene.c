// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "record_tls_scene.h"

#include "../lib/record_calls.h"
#include "../lib/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WAIT_MS 10000
#define NUMBERS 100000u

enum fate fate;
int fate_at;
size_t takes;
bool refuses_hello;
int opened;
int fds[2];
uint8_t data[LARGE], came[LARGE];

static unsigned suite;
static struct shared {
	struct aw_record records[2];
	/* by end and number: four bytes of the key, and of the tag that was made under it */
	struct {
		uint32_t key, tag;
	} used[2][NUMBERS];
} * shared;

static void die_at(enum fate here)
{
	if (fate == here && fate_at-- == 0) {
		kill(getpid(), SIGKILL);
		pause();
	}
}

static ssize_t fateful_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec first = { msg->msg_iov[0].iov_base, takes };
	struct msghdr little = { .msg_iov = &first, .msg_iovlen = 1 };
	ssize_t n;

	die_at(DIE_BEFORE_SEND);
	n = sendmsg(fd, takes ? &little : msg, flags);
	takes = 0;
	die_at(DIE_BEHIND_SEND);
	return n;
}

/* Seals, and notes the number. */
static bool noted_seal(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
		       const struct iovec *pieces, int count, uint8_t *to)
{
	int end = key == &shared->records[SERVER].tx.key;
	size_t len = 0;
	uint32_t tag, id;
	bool right;

	if (key->seq >= AW_KEY_RECORDS_MAX)
		abort();
	die_at(DIE_BEFORE_SEAL);
	for (int i = 0; i < count; i++)
		len += pieces[i].iov_len;
	right = aw_cipher.seal(key, head, pieces, count, to);
	memcpy(&tag, to + len, sizeof(tag));
	memcpy(&id, key->key, sizeof(id));
	if (key->seq < NUMBERS) {
		if (shared->used[end][key->seq].key == id && shared->used[end][key->seq].tag != tag)
			abort();
		shared->used[end][key->seq].key = id;
		shared->used[end][key->seq].tag = tag;
	}
	die_at(DIE_BEHIND_SEAL);
	return right;
}

static bool counted_open(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
			 uint8_t *text, size_t len)
{
	opened++;
	return aw_cipher.open(key, head, text, len);
}

static void forget(uint64_t id)
{
	aw_cipher.forget(id);
}

static const struct aw_record_cipher noted = { noted_seal, counted_open, forget };

static bool is_hello(const uint8_t *bytes, size_t len, bool sealed)
{
	return sealed && !refuses_hello && len == HELLO_LEN && memcmp(bytes, HELLO, len) == 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = recvmsg,
	.sendmsg = fateful_sendmsg,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.shutdown = shutdown,
	.poll = poll,
	.ioctl = record_calls_ioctl,
	.is_record = is_hello,
	.cipher = &noted,
};

struct aw_record *record_of(int end)
{
	return &shared->records[end];
}

ssize_t send_on(int end, const void *bytes, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, len };

	return aw_record_send(record_of(end), fds[end], &iov, 1, 0);
}

ssize_t receive_on(int end)
{
	struct pollfd pollfd = { .fd = fds[end], .events = POLLIN };
	struct iovec iov = { came, sizeof(came) };
	ssize_t n = -EAGAIN;

	while (n == -EAGAIN && poll(&pollfd, 1, WAIT_MS) > 0)
		n = aw_record_receive(record_of(end), fds[end], &iov, 1, 0);
	return n;
}

void expect_at(int end, const void *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = receive_on(end);

		assert_true(n > 0 && (size_t)n <= len - got);
		assert_memory_equal(came, (const uint8_t *)bytes + got, n);
		got += (size_t)n;
	}
}

static void connect_fds(void)
{
	tcp_pair(fds);
	/* As a handshake has: the record's bytes are not TCP's first. */
	for (int i = 0; i < 2; i++) {
		uint8_t hand[100] = { 0 };

		tcp_send(fds[i], hand, sizeof(hand));
		tcp_recv(fds[!i], hand, sizeof(hand));
	}
}

int take_request(void)
{
	int err;

	do
		err = aw_record_take_request(record_of(SERVER), fds[SERVER]);
	while (err == -EAGAIN);
	return err;
}

void begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	connect_fds();
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	fate = LIVE;
	takes = 0;
	refuses_hello = false;
	record_tls_begin(shared->records, fds, suite++ % RECORD_TLS_SUITES);
}

int connect_records(void **state)
{
	(void)state;
	begin();
	assert_int_equal(aw_record_initiate(record_of(CLIENT), fds[CLIENT], HELLO, HELLO_LEN), 0);
	assert_int_equal(take_request(), 0);
	aw_record_respond(record_of(SERVER), HELLO, HELLO_LEN);
	assert_int_equal(aw_record_answer(record_of(SERVER), fds[SERVER]), 0);
	return 0;
}

int close_records(void **state)
{
	(void)state;
	munmap(shared, sizeof(*shared));
	close(fds[CLIENT]);
	close(fds[SERVER]);
	return 0;
}
