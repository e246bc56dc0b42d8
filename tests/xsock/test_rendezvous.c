// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frames by which two ends meet, octet by octet.
#include "xsock/ext/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const struct aw_place here = {
	.status = AW_PLACE_READY,
	.port = 0x1234,
	.ticket = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
};

static const char answer[] =
	"aw RDMA CM place\1\0\x12\x34\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20";

static void probe__octets(void **state)
{
	uint8_t octets[AW_RENDEZVOUS_REQUEST_LEN];

	(void)state;
	aw_rendezvous_request_put(octets);
	assert_memory_equal(octets, "aw RDMA CM asks?\1\0\0\0", sizeof(octets));
	assert_int_equal(aw_rendezvous_opening(octets), AW_OPENING_REQUEST);
	assert_true(aw_rendezvous_request_is_known(octets));
	octets[16] = 2;
	assert_int_equal(aw_rendezvous_opening(octets), AW_OPENING_REQUEST);
	assert_false(aw_rendezvous_request_is_known(octets));
}

static void opening__kinds(void **state)
{
	uint8_t key[AW_RENDEZVOUS_KEY_LEN];

	(void)state;
	memcpy(key, "MPA ID Req Frame", sizeof(key));
	assert_int_equal(aw_rendezvous_opening(key), AW_OPENING_MPA);
	for (size_t i = 0; i < sizeof(key); i++) {
		key[i] ^= 1;
		assert_int_equal(aw_rendezvous_opening(key), AW_OPENING_OTHER);
		key[i] ^= 1;
	}
}

static void answer__octets(void **state)
{
	uint8_t octets[AW_RENDEZVOUS_REPLY_LEN];
	struct aw_place got;

	(void)state;
	aw_rendezvous_reply_put(octets, &here);
	assert_memory_equal(octets, answer, sizeof(octets));
	assert_true(aw_rendezvous_reply_get(octets, sizeof(octets), &got));
	assert_int_equal(got.status, AW_PLACE_READY);
	assert_int_equal(got.port, 0x1234);
	assert_memory_equal(got.ticket, here.ticket, sizeof(got.ticket));
	assert_false(aw_rendezvous_reply_get(octets, sizeof(octets) - 1, &got));
	assert_false(aw_rendezvous_reply_get(octets, 0, &got));
}

/* Key and version are to be right; a place has a port; another status is a refusal, be it known or not. */
static void answer__guilty(void **state)
{
	uint8_t octets[AW_RENDEZVOUS_REPLY_LEN];
	struct aw_place got;

	(void)state;
	for (size_t i = 0; i <= 16; i++) {
		memcpy(octets, answer, sizeof(octets));
		octets[i] ^= 0x40;
		assert_false(aw_rendezvous_reply_get(octets, sizeof(octets), &got));
	}
	memcpy(octets, answer, sizeof(octets));
	octets[18] = octets[19] = 0;
	assert_false(aw_rendezvous_reply_get(octets, sizeof(octets), &got));
	for (int status = 1; status <= UINT8_MAX; status++) {
		octets[17] = (uint8_t)status;
		assert_true(aw_rendezvous_reply_get(octets, sizeof(octets), &got));
		assert_int_equal(got.status, status <= AW_PLACE_VERSION ? status : AW_PLACE_NONE);
	}
}

static void mpa__rest(void **state)
{
	uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN] = "MPA ID Req Frame\x50\2";
	size_t rest;

	(void)state;
	assert_true(aw_rendezvous_mpa_rest(header, &rest));
	assert_int_equal(rest, 0);
	header[18] = 2;
	assert_true(aw_rendezvous_mpa_rest(header, &rest));
	assert_int_equal(rest, 512);
	header[19] = 1;
	assert_false(aw_rendezvous_mpa_rest(header, &rest));
}

/* RFC 5044 7.1.1: revision 1, R, and the answer as private data. */
static void mpa__reject(void **state)
{
	uint8_t octets[AW_RENDEZVOUS_REJECT_LEN];

	(void)state;
	aw_rendezvous_reject_put(octets, &here);
	assert_memory_equal(octets, "MPA ID Rep Frame\x20\1\0\x24", 20);
	assert_memory_equal(octets + 20, answer, AW_RENDEZVOUS_REPLY_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe__octets),  cmocka_unit_test(opening__kinds),
		cmocka_unit_test(answer__octets), cmocka_unit_test(answer__guilty),
		cmocka_unit_test(mpa__rest),	  cmocka_unit_test(mpa__reject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
