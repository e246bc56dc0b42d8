// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_MPA in RFC 6581's negotiation: which RTR, peer-to-peer or not, IRD and ORD, as initiator
// and as responder, against a peer that speaks octets, and between two ends of each policy.
#include "start_up.h"

#include <errno.h>
#include <stdlib.h>

/* As an initiator with one RTR: that one is asked for, and sent. */
static void initiate(uint8_t rtr, size_t ulpdu_len, uint8_t opcode)
{
	uint8_t frame[ENHANCED], ulpdu[RAW_ULPDU_MAX];
	struct half half;

	get_request(&half, frame);
	assert_int_equal(rtr_of(frame), rtr);
	send_reply(half.fd, C, SEND | WRITE | READ, 16);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(raw_recv_fpdu(half.fd, ulpdu), ulpdu_len);
	assert_int_equal(ulpdu[1] & 0xf, opcode);
	half_close(&half);
}

static void initiate_send(void)
{
	initiate(SEND, 18, 3);
}

static void initiate_write(void)
{
	initiate(WRITE, 14, 0);
}

static void initiate_read(void)
{
	initiate(READ, 18 + 28, 1);
}

static void rtr__initiator_of_each_kind(void **state)
{
	(void)state;
	in_child("rtr=send", initiate_send);
	in_child("rtr=write", initiate_write);
	in_child("rtr=read", initiate_read);
}

static void expect_terminate(int fd, uint8_t code)
{
	uint8_t ulpdu[RAW_ULPDU_MAX];

	assert_int_equal(raw_recv_fpdu(fd, ulpdu), 18 + 4);
	assert_int_equal(ulpdu[1] & 0xf, 7);
	assert_int_equal(ulpdu[18], 0x20);
	assert_int_equal(ulpdu[19], code);
	raw_expect_end(fd);
}

static void initiate_without_common_rtr(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_reply(half.fd, C, WRITE | READ, 16);
	expect_terminate(half.fd, 7);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EOPNOTSUPP);
	half_close(&half);
}

static void rtr__none_in_common(void **state)
{
	(void)state;
	in_child("rtr=send", initiate_without_common_rtr);
}

static void initiate_with_small_ird(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_reply(half.fd, C, WRITE, 0x3ffe);
	expect_terminate(half.fd, 6);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM);
	half_close(&half);
}

static void ird__insufficient(void **state)
{
	(void)state;
	in_child("", initiate_with_small_ird);
}

/* As a responder with one RTR: that one is offered, taken, and a Read of it answered. */
static void respond(uint8_t rtr, const uint8_t *ulpdu, size_t len)
{
	uint8_t frame[ENHANCED], response[RAW_ULPDU_MAX];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, SEND | WRITE | READ, 16);
	get_reply(&half, frame);
	assert_true(word(frame + 20) & 0x8000);
	assert_int_equal(rtr_of(frame), rtr);
	cm_expect_none(half.channel);
	raw_send_fpdu(half.fd, ulpdu, len);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (rtr == READ) {
		assert_int_equal(raw_recv_fpdu(half.fd, response), 14);
		assert_int_equal(response[1] & 0xf, 2);
	}
	half_close(&half);
}

static void respond_send(void)
{
	static const uint8_t rtr[18] = { 0x41, 0x43, [13] = 1 };

	respond(SEND, rtr, sizeof(rtr));
}

static void respond_write(void)
{
	respond(WRITE, raw_rtr_write, RAW_RTR_WRITE_LEN);
}

static void respond_read(void)
{
	static const uint8_t rtr[18 + 28] = { 0x41, 0x41, [9] = 1, [13] = 1, [21] = 1, [37] = 1 };

	respond(READ, rtr, sizeof(rtr));
}

static void rtr__responder_of_each_kind(void **state)
{
	(void)state;
	in_child("rtr=send", respond_send);
	in_child("rtr=write", respond_write);
	in_child("rtr=read", respond_read);
}

/* RFC 6581 9.2: one that it supports is offered all the same; the initiator then terminates. */
static void respond_without_common_rtr(uint8_t code, int status)
{
	uint8_t terminate[18 + 4] = { 0x41, 0x47, [9] = 2, [13] = 1, [18] = 0x20, [19] = code };
	uint8_t frame[ENHANCED];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, SEND, 16);
	get_reply(&half, frame);
	assert_int_equal(rtr_of(frame), WRITE);
	raw_send_fpdu(half.fd, terminate, sizeof(terminate));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, status);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void hear_no_common_rtr(void)
{
	respond_without_common_rtr(7, -EOPNOTSUPP);
}

static void hear_insufficient_ird(void)
{
	respond_without_common_rtr(6, -ENOMEM);
}

static void terminate__hears_why_start_up_failed(void **state)
{
	(void)state;
	in_child("rtr=write", hear_no_common_rtr);
	in_child("rtr=write", hear_insufficient_ird);
}

static void initiate_client_server(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	assert_int_equal(word(frame + 20) & 0xc000, 0);
	assert_int_equal(word(frame + 22) & 0xc000, 0);
	assert_true(word(frame + 20) > 0 && word(frame + 20) < NONE);
	send_reply(half.fd, C, 0, 4);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	half_close(&half);
}

static void p2p__off(void **state)
{
	(void)state;
	in_child("p2p=off", initiate_client_server);
}

/* RFC 6581 9.2: the responder does as the initiator says, whatever it would ask for itself. */
static void respond_peer_to_peer(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, WRITE, 16);
	get_reply(&half, frame);
	assert_int_equal(rtr_of(frame), WRITE);
	half_close(&half);
}

static void p2p__off_responder_follows(void **state)
{
	(void)state;
	in_child("p2p=off", respond_peer_to_peer);
}

static void initiate_ulp(void)
{
	uint8_t frame[ENHANCED];
	struct rdma_cm_event *event;
	struct half half;

	get_request(&half, frame);
	assert_int_equal(word(frame + 20) & NONE, NONE);
	assert_int_equal(word(frame + 22) & NONE, NONE);
	send_reply(half.fd, C, WRITE, NONE);
	event = cm_expect(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, event->param.conn.initiator_depth);
	assert_true(event->param.conn.responder_resources >= 16);
	rdma_ack_cm_event(event);
	half_close(&half);
}

static void respond_ulp(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, WRITE, 4);
	get_reply(&half, frame);
	assert_int_equal(word(frame + 20) & NONE, NONE);
	assert_int_equal(word(frame + 22) & NONE, NONE);
	half_close(&half);
}

static void ird_ord__ulp(void **state)
{
	(void)state;
	in_child("ird_ord=ulp", initiate_ulp);
	in_child("ird_ord=ulp", respond_ulp);
}

/* Nothing of RFC 6581 is wanted then, and its format MUST NOT be used (10). */
static void initiate_nothing_enhanced(void)
{
	uint8_t frame[PLAIN];
	struct half half;

	half_connect_client(&half, NULL);
	raw_recv(half.fd, frame, sizeof(frame));
	assert_int_equal(FLAGS(frame), C);
	assert_int_equal(frame[17], 1);
	half_close(&half);
}

static void ird_ord__ulp_and_no_p2p(void **state)
{
	(void)state;
	in_child("ird_ord=ulp,p2p=off,extensions=off", initiate_nothing_enhanced);
}

/* The first message goes from end to the other; peer-to-peer, that may be the responder's. */
static void pass_message(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	char buf[2000], text[2000];
	struct ibv_mr *mr = rdma_reg_msgs(to, buf, sizeof(buf));
	struct ibv_mr *text_mr = rdma_reg_msgs(from, text, sizeof(text));
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	assert_true(mr && text_mr);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	assert_int_equal(rdma_post_recv(to, NULL, buf, sizeof(buf), mr), 0);
	assert_int_equal(rdma_post_send(from, NULL, text, sizeof(text), text_mr, 0), 0);
	assert_int_equal(rdma_get_recv_comp(to, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, sizeof(text));
	assert_memory_equal(buf, text, sizeof(text));
	rdma_dereg_mr(mr);
	rdma_dereg_mr(text_mr);
}

static void two_ends_server_first(void)
{
	struct cm_ends ends;

	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	pass_message(ends.server, ends.client);
	pass_message(ends.client, ends.server);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void two_ends_client_first(void)
{
	struct cm_ends ends;

	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	pass_message(ends.client, ends.server);
	pass_message(ends.server, ends.client);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void two_ends__each_policy(void **state)
{
	static const char *const peer_to_peer[] = {
		"rtr=send",	      "rtr=write",	 "rtr=read",
		"rtr=send+read",      "markers=on",	 "crc=off",
		"crc=off,markers=on", "ird_ord=ulp",	 "ird_ord=ulp,rtr=read",
		"extensions=off",     "large_fpdus=any", "large_fpdus=off,extensions=off",
	};
	static const char *const client_server[] = {
		"p2p=off",
		"revision=1",
		"p2p=off,ird_ord=ulp",
		"revision=1,markers=on,crc=off",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(peer_to_peer) / sizeof(peer_to_peer[0]); i++)
		in_child(peer_to_peer[i], two_ends_server_first);
	for (size_t i = 0; i < sizeof(client_server) / sizeof(client_server[0]); i++)
		in_child(client_server[i], two_ends_client_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rtr__initiator_of_each_kind),
		cmocka_unit_test(rtr__none_in_common),
		cmocka_unit_test(ird__insufficient),
		cmocka_unit_test(rtr__responder_of_each_kind),
		cmocka_unit_test(terminate__hears_why_start_up_failed),
		cmocka_unit_test(p2p__off),
		cmocka_unit_test(p2p__off_responder_follows),
		cmocka_unit_test(ird_ord__ulp),
		cmocka_unit_test(ird_ord__ulp_and_no_p2p),
		cmocka_unit_test(two_ends__each_policy),
	};

	setenv("ANYWARP_LOG", "info", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
