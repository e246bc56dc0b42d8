// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c without a library. The processor's instruction takes three turns to be done with 8 bytes and can begin with
// others each turn: so three streams at a time, put together by tables of what so many zero bytes make of a register.
#include "xsock/framed/slot.h"

#include <pthread.h>
#include <string.h>

#define STREAM 1024u /* bytes of each of the three */

#if defined(__x86_64__)
#define HAS_INSTRUCTION 1
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define FOLD_8(crc, value) ((uint32_t)__builtin_ia32_crc32di(crc, value))
#define FOLD_1(crc, value) __builtin_ia32_crc32qi(crc, value)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAS_INSTRUCTION 1
#define WITH_INSTRUCTION
#define FOLD_8(crc, value) __crc32cd(crc, value)
#define FOLD_1(crc, value) __crc32cb(crc, value)

static bool has_instruction(void)
{
	return true;
}
#endif

#ifdef HAS_INSTRUCTION
static uint32_t shifts[4][256]; /* a register's four bytes, each STREAM zero bytes later */
static bool is_there;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static inline uint64_t load(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* As crc32c_update of so many zero bytes: linear, so that its table is that of single bits. */
WITH_INSTRUCTION static uint32_t fold_zeros(uint32_t crc)
{
	for (unsigned i = 0; i < STREAM; i += 8)
		crc = FOLD_8(crc, 0);
	return crc;
}

static void prepare(void)
{
	is_there = has_instruction();
	for (unsigned byte = 0; is_there && byte < 4; byte++)
		for (uint32_t value = 0; value < 256; value++)
			shifts[byte][value] = fold_zeros(value << 8 * byte);
}

static inline uint32_t shift(uint32_t crc)
{
	return shifts[0][crc & 255] ^ shifts[1][crc >> 8 & 255] ^ shifts[2][crc >> 16 & 255] ^
	       shifts[3][crc >> 24];
}

WITH_INSTRUCTION static uint32_t fold(uint32_t crc, const uint8_t *at, size_t len)
{
	for (; len >= 3 * STREAM; len -= 3 * STREAM, at += 3 * STREAM) {
		uint32_t second = 0, third = 0;

		for (unsigned i = 0; i < STREAM; i += 8) {
			crc = FOLD_8(crc, load(at + i));
			second = FOLD_8(second, load(at + STREAM + i));
			third = FOLD_8(third, load(at + 2 * (size_t)STREAM + i));
		}
		crc = shift(shift(crc) ^ second) ^ third;
	}
	for (; len >= 8; len -= 8, at += 8)
		crc = FOLD_8(crc, load(at));
	for (; len > 0; len--, at++)
		crc = FOLD_1(crc, *at);
	return crc;
}

uint32_t aw_slot_crc(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, prepare);
	return is_there ? fold(crc, data, len) : aw_frame_crc_portable(crc, data, len);
}
#else
uint32_t aw_slot_crc(uint32_t crc, const void *data, size_t len)
{
	return aw_frame_crc_portable(crc, data, len);
}
#endif
