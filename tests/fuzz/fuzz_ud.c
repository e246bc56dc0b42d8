// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams of strangers: whatever arrives is parsed within its octets; it completes a receive only
// with the QP's Q_Key, in a state that receives, and whole; and no octet is written beside what that
// receive's SGEs say.
#include "fuzz.h"

#include "net/mr/mrtab.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/ud/ud.h"
#include "wire/sidr.h"

#include <string.h>

enum {
	ROOM = 8192,
	RED = 64, /* octets around what may be written */
	RECVS_MAX = 3,
	QKEY = 0x11223344,
};

static struct {
	struct aw_cq cq;
	struct aw_uqp *qp;
	struct aw_mr mr;
	uint8_t memory[RED + ROOM + RED];
	uint8_t body[UD_GRH_LEN + UD_PAYLOAD_MAX];
} f;

static void set_up(void)
{
	struct aw_uqp_attr attr = {
		.send_cq = &f.cq,
		.recv_cq = &f.cq,
		.pd = &f,
		.recv_wr_max = RECVS_MAX,
		.recv_sge_max = 2,
		.kind = &aw_ud_kind,
		.ud_mtu = UD_PAYLOAD_MAX,
	};

	if (f.qp)
		return;
	setenv("ANYWARP_PERSONA", "roce", 1);
	f.mr = (struct aw_mr){
		.access = AW_ACCESS_LOCAL_WRITE,
		.iova = (uintptr_t)f.memory,
		.len = sizeof(f.memory),
		.host = f.memory,
		.pd = &f,
	};
	FUZZ_CHECK(aw_engine_get() == 0);
	FUZZ_CHECK(aw_cq_init(&f.cq, 64, NULL, NULL) == 0);
	FUZZ_CHECK(aw_uqp_create(&attr, &f.qp) == 0);
	FUZZ_CHECK(aw_mr_add(&f.mr) == 0);
}

/* Each receive is two SGEs with a gap between them; where one ends is where its red zone begins. */
static uint32_t post(struct bytes *b, uint32_t id)
{
	uint32_t first = (uint32_t)bytes_range(b, 0, 2000), second = bytes_u16(b) % 4200;
	struct aw_sge sge[2] = {
		{ (uintptr_t)f.memory + RED, first, f.mr.stag },
		{ (uintptr_t)f.memory + RED + 2 * RED + first, second, f.mr.stag },
	};

	FUZZ_CHECK(aw_uqp_recv(f.qp, id, sge, 2) == 0);
	return id << 24 | first << 13 | second;
}

static void check_red(uint32_t first, uint32_t second)
{
	const uint8_t *p = f.memory;
	size_t end = RED + first + 2 * RED + second;

	for (size_t i = 0; i < sizeof(f.memory); i++) {
		bool inside = (i >= RED && i < RED + first) ||
			      (i >= RED + first + 2 * RED && i < end);

		FUZZ_CHECK(inside || p[i] == 0xee);
	}
}

static uint8_t placed_at(uint32_t first, size_t i)
{
	return f.memory[i < first ? RED + i : RED + 2 * RED + i];
}

/* A copy of exactly that length, so that a sanitizer sees a read too far. */
static bool parse(const uint8_t *octets, size_t len, struct ud_hdr *hdr)
{
	uint8_t *exact = malloc(len ? len : 1);
	struct sidr_msg msg;
	bool parsed;

	if (!exact)
		abort();
	memcpy(exact, octets, len);
	parsed = ud_parse(exact, len, hdr);
	if (sidr_parse(exact, len, &msg))
		FUZZ_CHECK(!parsed && msg.pd_len == len - SIDR_HDR_LEN && msg.qpn <= 0xffffff);
	free(exact);
	return parsed;
}

static size_t draw_datagram(struct bytes *b, uint8_t *octets)
{
	struct ud_hdr hdr = {
		.flags = bytes_u8(b) & 3,
		.dest_qpn = f.qp->qpn,
		.src_qpn = bytes_u16(b),
		.qkey = QKEY,
	};
	uint8_t wrong = bytes_u8(b);
	size_t len = bytes_range(b, 0, UD_PAYLOAD_MAX + 8);

	ud_build(&hdr, octets);
	if (wrong & 1)
		octets[wrong / 2 % UD_HDR_LEN] = bytes_u8(b);
	memset(octets + UD_HDR_LEN, (int)len & 0x7f, len);
	/* Sometimes a header alone, or a part of it. */
	return wrong == 0xfe ? bytes_u8(b) % UD_HDR_LEN : UD_HDR_LEN + len;
}

/* A receive completed: everything about it is as the datagram and the receive say. */
static void check_received(const struct aw_cqe *cqe, const struct ud_hdr *hdr, size_t len,
			   const uint32_t *posted)
{
	uint32_t first = *posted >> 13 & 0x7ff, second = *posted & 0x1fff;

	FUZZ_CHECK(hdr->qkey == QKEY && cqe->wr_id == *posted >> 24);
	FUZZ_CHECK(cqe->status == AW_WC_SUCCESS && cqe->byte_len == UD_GRH_LEN + len);
	FUZZ_CHECK(cqe->byte_len <= first + second && cqe->src_qpn == hdr->src_qpn);
	FUZZ_CHECK(!(cqe->flags & AW_WC_WITH_IMM) == !(hdr->flags & UD_FLAG_IMM));
	check_red(first, second);
	for (size_t i = 0; i < len; i++)
		FUZZ_CHECK(placed_at(first, UD_GRH_LEN + i) == (len & 0x7f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t octets[UD_HDR_LEN + UD_PAYLOAD_MAX + 8];
	struct ud_route route = { .src = { [10] = 0xff, 0xff, 1 },
				  .dst = { [10] = 0xff, 0xff, 2 } };
	struct bytes b = { data, size };
	uint32_t posted[RECVS_MAX], count, used = 0;
	bool receives;

	set_up();
	aw_ud_move(f.qp, AW_UD_INIT);
	aw_ud_set_qkey(f.qp, QKEY);
	count = bytes_u8(&b) % (RECVS_MAX + 1);
	for (uint32_t i = 0; i < count; i++)
		posted[i] = post(&b, i);
	receives = bytes_u8(&b) % 4 != 0;
	if (receives)
		aw_ud_move(f.qp, AW_UD_RTR);
	for (int i = 0; i < 4; i++) {
		struct aw_ud_arrival arrival = { .route = &route, .body = f.body };
		size_t len = draw_datagram(&b, octets);
		struct aw_cq_entry entry;

		if (!parse(octets, len, &arrival.hdr))
			continue;
		FUZZ_CHECK(len >= UD_HDR_LEN && len <= UD_DATAGRAM_MAX);
		arrival.len = (uint32_t)len - UD_HDR_LEN;
		ud_grh_build(&route, arrival.len, f.body);
		memcpy(f.body + UD_GRH_LEN, octets + UD_HDR_LEN, arrival.len);
		memset(f.memory, 0xee, sizeof(f.memory));
		aw_ud_receive(f.qp, &arrival);
		if (aw_cq_poll(&f.cq, &entry, 1) != 1)
			continue;
		FUZZ_CHECK(receives && used < count);
		check_received(&entry.cqe, &arrival.hdr, arrival.len, &posted[used++]);
	}
	aw_ud_move(f.qp, AW_UD_RESET);
	return 0;
}
