// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMAP's control octet and headers against RFC 5040 figures 3 to 6 and RFC 7306 figures 2 to 7.
#include "wire/rdmap.h"

#include "wire/ddp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
	enum rdmap_opcode op;
	bool tagged;
	uint32_t qn;
} usage[] = {
	{ RDMAP_WRITE, true, 0 },	 { RDMAP_READ_REQ, false, 1 },
	{ RDMAP_READ_RESP, true, 0 },	 { RDMAP_SEND, false, 0 },
	{ RDMAP_SEND_INV, false, 0 },	 { RDMAP_SEND_SE, false, 0 },
	{ RDMAP_SEND_SE_INV, false, 0 }, { RDMAP_TERMINATE, false, 2 },
	{ RDMAP_IMM, false, 0 },	 { RDMAP_IMM_SE, false, 0 },
	{ RDMAP_ATOMIC_REQ, false, 1 },	 { RDMAP_ATOMIC_RESP, false, 3 },
	{ RDMAP_FLUSH_REQ, false, 1 },	 { RDMAP_FLUSH_RESP, false, 3 },
};

static void rdmap_ctrl__octets(void **state)
{
	(void)state;
	assert_int_equal(rdmap_ctrl(RDMAP_WRITE), 0x40);
	assert_int_equal(rdmap_ctrl(RDMAP_SEND), 0x43);
	assert_int_equal(rdmap_ctrl(RDMAP_TERMINATE), 0x47);
	assert_int_equal(rdmap_ctrl(RDMAP_ATOMIC_RESP), 0x4b);
	assert_int_equal(rdmap_ctrl(RDMAP_WRITE) | RDMAP_CTRL_IMM, 0x50);
}

/* Every opcode with every model and queue: exactly the figures' combinations pass. */
static void rdmap_ctrl_get__usage_of_ddp_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(usage) / sizeof(usage[0]); i++) {
		for (uint32_t qn = 0; qn < 6; qn++) {
			enum rdmap_opcode op = 99;
			uint8_t ctrl = rdmap_ctrl(usage[i].op);
			bool fits = !usage[i].tagged && usage[i].qn == qn;

			assert_int_equal(rdmap_ctrl_get(ctrl, false, qn, &op),
					 fits ? AW_OK : AW_E_RDMAP_OPCODE);
			assert_int_equal(op, fits ? usage[i].op : 99);
			assert_int_equal(rdmap_ctrl_get(ctrl, true, qn, &op),
					 usage[i].tagged ? AW_OK : AW_E_RDMAP_OPCODE);
		}
	}
}

static void rdmap_ctrl_get__reserved_opcodes(void **state)
{
	enum rdmap_opcode op;

	(void)state;
	for (uint8_t code = 14; code < 16; code++) {
		assert_int_equal(rdmap_ctrl_get(0x40 | code, false, 0, &op), AW_E_RDMAP_OPCODE);
		assert_int_equal(rdmap_ctrl_get(0x40 | code, true, 0, &op), AW_E_RDMAP_OPCODE);
	}
}

static void rdmap_ctrl_get__version(void **state)
{
	enum rdmap_opcode op;

	(void)state;
	assert_int_equal(rdmap_ctrl_get(0x03, false, 0, &op), AW_E_RDMAP_VERSION);
	assert_int_equal(rdmap_ctrl_get(0x83, false, 0, &op), AW_E_RDMAP_VERSION);
	assert_int_equal(rdmap_ctrl_get(0xc3, false, 0, &op), AW_E_RDMAP_VERSION);
	/* A reserved opcode of another version is a version error first. */
	assert_int_equal(rdmap_ctrl_get(0xcf, false, 0, &op), AW_E_RDMAP_VERSION);
}

static void rdmap_ctrl_get__reserved_bits_are_ignored(void **state)
{
	enum rdmap_opcode op;

	(void)state;
	assert_int_equal(rdmap_ctrl_get(0x73, false, 0, &op), AW_OK);
	assert_int_equal(op, RDMAP_SEND);
}

/* RFC 5040 figure 6. */
static void rdmap_read_req__octets(void **state)
{
	static const uint8_t golden[RDMAP_READ_REQ_LEN] = {
		0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22,
		0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
	};
	struct rdmap_read_req req = { 0x01020304, 0x1112131415161718, 0x21222324, 0x31323334,
				      0x4142434445464748 };
	struct rdmap_read_req got = rdmap_read_req_get(golden);
	uint8_t wire[RDMAP_READ_REQ_LEN];

	(void)state;
	rdmap_read_req_put(&req, wire);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_int_equal(got.sink_stag, req.sink_stag);
	assert_int_equal(got.sink_to, req.sink_to);
	assert_int_equal(got.size, req.size);
	assert_int_equal(got.src_stag, req.src_stag);
	assert_int_equal(got.src_to, req.src_to);
}

/* RFC 7306 figure 4. */
static const uint8_t atomic_golden[RDMAP_ATOMIC_REQ_LEN] = {
	0x00, 0x00, 0x00, 0x02, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x21,
	0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36,
	0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53,
	0x54, 0x55, 0x56, 0x57, 0x58, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
};

static void rdmap_atomic_req_put__octets(void **state)
{
	struct rdmap_atomic_req req = {
		.op = RDMAP_CMP_SWAP,
		.request_id = 0x01020304,
		.stag = 0x11121314,
		.to = 0x2122232425262728,
		.add_swap_data = 0x3132333435363738,
		.add_swap_mask = 0x4142434445464748,
		.compare_data = 0x5152535455565758,
		.compare_mask = 0x6162636465666768,
	};
	uint8_t wire[RDMAP_ATOMIC_REQ_LEN];

	(void)state;
	rdmap_atomic_req_put(&req, wire);
	assert_memory_equal(wire, atomic_golden, sizeof(atomic_golden));
}

static void rdmap_atomic_req_get__octets(void **state)
{
	struct rdmap_atomic_req got = rdmap_atomic_req_get(atomic_golden);

	(void)state;
	assert_int_equal(got.op, RDMAP_CMP_SWAP);
	assert_int_equal(got.request_id, 0x01020304);
	assert_int_equal(got.stag, 0x11121314);
	assert_int_equal(got.to, 0x2122232425262728);
	assert_int_equal(got.add_swap_data, 0x3132333435363738);
	assert_int_equal(got.add_swap_mask, 0x4142434445464748);
	assert_int_equal(got.compare_data, 0x5152535455565758);
	assert_int_equal(got.compare_mask, 0x6162636465666768);
}

static void rdmap_atomic_req_get__reserved_bits_are_ignored(void **state)
{
	uint8_t wire[RDMAP_ATOMIC_REQ_LEN] = { 0xff, 0xff, 0xff, 0xf0 };

	(void)state;
	assert_int_equal(rdmap_atomic_req_get(wire).op, RDMAP_FETCH_ADD);
}

/* RFC 7306 figure 6. */
static void rdmap_atomic_resp__octets(void **state)
{
	static const uint8_t golden[RDMAP_ATOMIC_RESP_LEN] = { 0x01, 0x02, 0x03, 0x04, 0x11, 0x12,
							       0x13, 0x14, 0x15, 0x16, 0x17, 0x18 };
	struct rdmap_atomic_resp resp = { 0x01020304, 0x1112131415161718 };
	struct rdmap_atomic_resp got = rdmap_atomic_resp_get(golden);
	uint8_t wire[RDMAP_ATOMIC_RESP_LEN];

	(void)state;
	rdmap_atomic_resp_put(&resp, wire);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_int_equal(got.request_id, resp.request_id);
	assert_int_equal(got.original, resp.original);
}

/* docs/extensions.md. */
static void rdmap_imm__octets(void **state)
{
	static const uint8_t golden[RDMAP_IMM_LEN] = { 0x01, 0x02, 0x03, 0x04,
						       0x11, 0x12, 0x13, 0x14 };
	struct rdmap_imm imm = { 0x01020304, 0x11121314 };
	struct rdmap_imm got = rdmap_imm_get(golden);
	uint8_t wire[RDMAP_IMM_LEN];

	(void)state;
	rdmap_imm_put(&imm, wire);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_int_equal(got.data, imm.data);
	assert_int_equal(got.length, imm.length);
}

/* docs/extensions.md. */
static void rdmap_flush__octets(void **state)
{
	static const uint8_t golden[RDMAP_FLUSH_REQ_LEN] = {
		0,    0,    0x02, 0x01, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32,
		0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
	};
	const struct rdmap_flush_req req = {
		.type = RDMAP_FLUSH_PERSISTENT,
		.level = RDMAP_FLUSH_MR,
		.request_id = 0x11121314,
		.stag = 0x21222324,
		.to = 0x3132333435363738,
		.len = 0x4142434445464748,
	};
	struct rdmap_flush_req got = rdmap_flush_req_get(golden);
	uint8_t wire[RDMAP_FLUSH_REQ_LEN];

	(void)state;
	rdmap_flush_req_put(&req, wire);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_int_equal(got.type, req.type);
	assert_int_equal(got.level, req.level);
	assert_int_equal(got.request_id, req.request_id);
	assert_int_equal(got.stag, req.stag);
	assert_int_equal(got.to, req.to);
	assert_int_equal(got.len, req.len);
	rdmap_flush_resp_put(0x51525354, wire);
	assert_memory_equal(wire, "\x51\x52\x53\x54", RDMAP_FLUSH_RESP_LEN);
	assert_int_equal(rdmap_flush_resp_get(wire), 0x51525354);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdmap_ctrl__octets),
		cmocka_unit_test(rdmap_ctrl_get__usage_of_ddp_fields),
		cmocka_unit_test(rdmap_ctrl_get__reserved_opcodes),
		cmocka_unit_test(rdmap_ctrl_get__version),
		cmocka_unit_test(rdmap_ctrl_get__reserved_bits_are_ignored),
		cmocka_unit_test(rdmap_read_req__octets),
		cmocka_unit_test(rdmap_atomic_req_put__octets),
		cmocka_unit_test(rdmap_atomic_req_get__octets),
		cmocka_unit_test(rdmap_atomic_req_get__reserved_bits_are_ignored),
		cmocka_unit_test(rdmap_atomic_resp__octets),
		cmocka_unit_test(rdmap_imm__octets),
		cmocka_unit_test(rdmap_flush__octets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
