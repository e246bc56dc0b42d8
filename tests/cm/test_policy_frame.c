// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_MPA in what RFC 5044's frames say: markers, CRC, revision; a peer that is an initiator
// too; and a list that is wrong.
#include "start_up.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void expect_flags(uint8_t flags)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	assert_int_equal(FLAGS(frame), flags);
	half_close(&half);
}

static void initiate_flags_default(void)
{
	expect_flags(C | S);
}

static void initiate_flags_markers(void)
{
	expect_flags(M | C | S);
}

static void initiate_flags_no_crc(void)
{
	expect_flags(S);
}

static void flags__of_the_request(void **state)
{
	(void)state;
	in_child("", initiate_flags_default);
	in_child("markers=on", initiate_flags_markers);
	in_child("crc=off", initiate_flags_no_crc);
}

static void respond_flags(uint8_t asked, uint8_t flags)
{
	uint8_t frame[ENHANCED];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, asked, WRITE, 4);
	get_reply(&half, frame);
	assert_int_equal(FLAGS(frame), flags);
	half_close(&half);
}

static void respond_flags_default(void)
{
	respond_flags(0, C | S);
}

static void respond_flags_markers(void)
{
	respond_flags(C, M | C | S);
}

/* RFC 5044 7.1.1: off only when neither end wants them. */
static void respond_flags_no_crc(void)
{
	respond_flags(0, S);
	respond_flags(C, C | S);
}

static void flags__of_the_reply(void **state)
{
	(void)state;
	in_child("", respond_flags_default);
	in_child("markers=on", respond_flags_markers);
	in_child("crc=off", respond_flags_no_crc);
}

/* One FPDU of the peer's whose CRC is wrong: taken, or the stream's end. */
static void receive_bad_crc(uint8_t flags, enum rdma_cm_event_type type, int status)
{
	static const uint8_t fpdu[20] = { 0, 14, 0xc1, 0x40, 0, 0, 0, 1, [16] = 0xde, 0xad };
	uint8_t frame[ENHANCED], ulpdu[RAW_ULPDU_MAX];
	struct half half;

	get_request(&half, frame);
	send_reply(half.fd, flags, WRITE, 4);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (flags & C)
		raw_recv_fpdu(half.fd, ulpdu);
	raw_send(half.fd, fpdu, sizeof(fpdu));
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		assert_int_equal(rdma_disconnect(half.id), 0);
		raw_expect_end(half.fd);
		close(half.fd);
		half.fd = -1;
		type = RDMA_CM_EVENT_DISCONNECTED;
	}
	cm_expect_ack(half.channel, type, status);
	half_close(&half);
}

static void crc_off_at_both(void)
{
	receive_bad_crc(0, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void crc_wanted_by_the_peer(void)
{
	receive_bad_crc(C, RDMA_CM_EVENT_DISCONNECTED, -EPROTO);
}

static void crc__off_only_when_both_agree(void **state)
{
	(void)state;
	in_child("crc=off", crc_off_at_both);
	in_child("crc=off", crc_wanted_by_the_peer);
}

static void initiate_revision_1(void)
{
	static const uint8_t reply[PLAIN] = "MPA ID Rep Frame\x40\x01\0";
	uint8_t frame[PLAIN];
	struct half half;

	half_connect_client(&half, NULL);
	raw_recv(half.fd, frame, sizeof(frame));
	assert_int_equal(FLAGS(frame), C);
	assert_int_equal(frame[17], 1);
	assert_int_equal(word(frame + 18), 0);
	raw_send(half.fd, reply, sizeof(reply));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	half_close(&half);
}

/* There is nothing older to fall back to. */
static void initiate_revision_1_closed(void)
{
	uint8_t frame[PLAIN];
	struct half half;

	half_connect_client(&half, NULL);
	raw_recv(half.fd, frame, sizeof(frame));
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	assert_int_equal(raw_pending(half.listener), 0);
	half_close(&half);
}

static void revision_1__initiator(void **state)
{
	(void)state;
	in_child("revision=1", initiate_revision_1);
	in_child("revision=1", initiate_revision_1_closed);
}

/* RFC 5044 7.1.1: a revision that cannot be handled closes the connection. */
static void refuse_revision_2(void)
{
	static const uint8_t request[PLAIN] = "MPA ID Req Frame\x40\x01\0";
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, WRITE, 4);
	raw_expect_end(half.fd);
	close(half.fd);
	half.fd = raw_connect(cm_port(half.id));
	raw_send(half.fd, request, sizeof(request));
	half_take_request(&half);
	half_close(&half);
}

static void log_revision_2(void)
{
	cm_expect_log(refuse_revision_2, "mpa revision 2 not supported, only 1 to 1");
}

static void revision_1__responder(void **state)
{
	(void)state;
	in_child("revision=1", log_revision_2);
}

/* RFC 5044 7.1.2 rule 8. */
static void meet_another_initiator(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_request(half.fd, C, WRITE, 4);
	raw_expect_end(half.fd);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

static void log_initiators(void)
{
	cm_expect_log(meet_another_initiator, "both ends are initiators");
}

static void initiator_initiator__detected(void **state)
{
	(void)state;
	in_child("", log_initiators);
}

static void fail_to_begin(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_bound(channel, "127.0.0.1");

	assert_int_equal(rdma_listen(id, 1), -1);
	assert_int_equal(errno, EINVAL);
	cm_destroy(id);
	id = cm_resolved(channel, "127.0.0.1", 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_connect(id, NULL), -1);
		assert_int_equal(errno, EINVAL);
	}
	cm_destroy(id);
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
}

static void log_bad_list(void)
{
	cm_expect_log(fail_to_begin, "error: ANYWARP_MPA: 'crc=maybe': crc must be on or off\n");
}

static void list__wrong(void **state)
{
	(void)state;
	in_child("p2p=on,crc=maybe", log_bad_list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags__of_the_request),
		cmocka_unit_test(flags__of_the_reply),
		cmocka_unit_test(crc__off_only_when_both_agree),
		cmocka_unit_test(revision_1__initiator),
		cmocka_unit_test(revision_1__responder),
		cmocka_unit_test(initiator_initiator__detected),
		cmocka_unit_test(list__wrong),
	};

	setenv("ANYWARP_LOG", "info", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
