// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One inbound ULPDU against the rules of RFC 5040 and 5041, each with the error that reports it,
// and Writes; a bad segment changes nothing.
#include "../lib/core_pair.h"

#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* What one bad segment, len octets behind hdr, leads to in a fresh responder with a receive. */
static enum aw_error verdict(const struct ddp_hdr *hdr, size_t len)
{
	struct core_end *end = core_responder();
	enum aw_error err;

	core_recv(end, 1, 0, 100);
	err = core_ulpdu(end, hdr, len);
	if (err) {
		assert_int_equal(end->qp.state, AW_QP_TERMINATE);
		assert_int_equal(end->qp.error, err);
		assert_int_equal(end->placed, 0);
	}
	core_end_destroy(end);
	return err;
}

static void aw_rx_ulpdu__too_short(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[8] = { 0 };

	(void)state;
	put_le32(octets + 4, crc32c_final(crc32c_update(CRC32C_INIT, octets, 4)));
	assert_int_equal(aw_rx_octets(&end->qp, octets, 8), 8); /* a ULPDU of no octets */
	assert_int_equal(end->qp.error, AW_E_DDP_CATASTROPHIC);
	core_end_destroy(end);
	end = core_responder();
	assert_int_equal(aw_rx_ulpdu(&end->qp, (const uint8_t *)"\x41\x43", 2),
			 AW_E_DDP_CATASTROPHIC);
	assert_true(core_tx_one(end));
	assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x10\0\0\0", 4);
	core_end_destroy(end);
}

static void aw_rx_ulpdu__untagged_errors(void **state)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	assert_int_equal(verdict(&hdr, 100), AW_OK);
	assert_int_equal(verdict(&hdr, 101), AW_E_DDP_TOO_LONG);
	hdr.msn = 2;
	assert_int_equal(verdict(&hdr, 1), AW_E_DDP_MSN_RANGE);
	hdr.msn = 0;
	assert_int_equal(verdict(&hdr, 1), AW_E_DDP_MSN_RANGE);
	hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 1);
	assert_int_equal(verdict(&hdr, 1), AW_E_DDP_MO);
	hdr = core_untagged(RDMAP_ATOMIC_RESP, DDP_QN_ATOMIC, 1, 0);
	assert_int_equal(verdict(&hdr, 1), AW_E_DDP_QN);
	hdr.qn = UINT32_MAX;
	assert_int_equal(verdict(&hdr, 1), AW_E_DDP_QN);
}

static void aw_rx_ulpdu__version_errors(void **state)
{
	struct core_end *end;
	uint8_t p[20];
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	end = core_responder();
	ddp_put(&hdr, p);
	p[0] ^= 3;
	assert_int_equal(aw_rx_ulpdu(&end->qp, p, 18), AW_E_DDP_UNTAGGED_VERSION);
	core_end_destroy(end);
	end = core_responder();
	hdr.tagged = true;
	ddp_put(&hdr, p);
	p[0] ^= 3;
	assert_int_equal(aw_rx_ulpdu(&end->qp, p, 14), AW_E_DDP_TAGGED_VERSION);
	core_end_destroy(end);
	hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	hdr.ulp_ctrl = RDMAP_SEND;
	assert_int_equal(verdict(&hdr, 0), AW_E_RDMAP_VERSION);
}

static void aw_rx_ulpdu__opcode_errors(void **state)
{
	struct ddp_hdr hdr;

	(void)state;
	for (unsigned int op = 0; op < 16; op++) {
		bool fits = op >= RDMAP_SEND && op <= RDMAP_SEND_SE_INV;

		hdr = core_untagged((enum rdmap_opcode)op, DDP_QN_SEND, 1, 0);
		if (!fits)
			assert_int_equal(verdict(&hdr, 8), AW_E_RDMAP_OPCODE);
		/* A Flush that was not agreed on is no less unexpected on its own queue. */
		if (op != RDMAP_READ_REQ && op != RDMAP_ATOMIC_REQ) {
			hdr = core_untagged((enum rdmap_opcode)op, DDP_QN_READ, 1, 0);
			assert_int_equal(verdict(&hdr, 28), AW_E_RDMAP_OPCODE);
		}
		if (op != RDMAP_TERMINATE) {
			hdr = core_untagged((enum rdmap_opcode)op, DDP_QN_TERMINATE, 1, 0);
			assert_int_equal(verdict(&hdr, 4), AW_E_RDMAP_OPCODE);
		}
		if (op != RDMAP_WRITE) {
			hdr = core_tagged((enum rdmap_opcode)op, CORE_STAG, CORE_IOVA);
			assert_int_equal(verdict(&hdr, 4), AW_E_RDMAP_OPCODE);
		}
	}
}

static void aw_rx_write__places(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA + CORE_MEM - 5);

	(void)state;
	assert_int_equal(core_ulpdu(end, &hdr, 5), AW_OK);
	assert_memory_equal(end->mem + CORE_MEM - 5, core_data, 5);
	assert_int_equal(end->logged, 0);
	core_end_destroy(end);
}

static void aw_rx_write__errors(void **state)
{
	static const struct {
		uint32_t stag;
		uint64_t to;
		enum aw_error err;
	} cases[] = {
		{ 0xbad, CORE_IOVA, AW_E_DDP_TAGGED_STAG },
		{ CORE_STAG, CORE_IOVA + CORE_MEM - 4, AW_E_DDP_TAGGED_BOUNDS },
		{ CORE_STAG, CORE_IOVA - 1, AW_E_DDP_TAGGED_BOUNDS },
		{ CORE_STAG, UINT64_MAX - 3, AW_E_DDP_TAGGED_TO_WRAP },
		{ 0x99, CORE_IOVA, AW_E_DDP_TAGGED_NOT_ASSOCIATED },
		{ 0x98, CORE_IOVA, AW_E_RDMAP_ACCESS },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = core_responder();
		struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, cases[i].stag, cases[i].to);

		core_mr_add(end, 0x99, ~0u, 0, 100)->pd = &core_other_pd;
		core_mr_add(end, 0x98, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_READ, 0, 100);
		assert_int_equal(core_ulpdu(end, &hdr, 5), cases[i].err);
		assert_int_equal(end->placed, 0);
		core_end_destroy(end);
		/* RFC 5041 5.2: without payload there is nothing to check. */
		assert_int_equal(verdict(&hdr, 0), AW_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_ulpdu__too_short),
		cmocka_unit_test(aw_rx_ulpdu__untagged_errors),
		cmocka_unit_test(aw_rx_ulpdu__version_errors),
		cmocka_unit_test(aw_rx_ulpdu__opcode_errors),
		cmocka_unit_test(aw_rx_write__places),
		cmocka_unit_test(aw_rx_write__errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
