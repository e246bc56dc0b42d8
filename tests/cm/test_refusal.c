// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the user is told at the default level of the log of a connection that fails in its start-up: the cause, and the
// remedy where there is one. Of strangers nothing is told.
#include "given.h"
#include "start_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORT_MS 50
#define FAILED " error: connection failed peer 127.0.0.1:"

static const char other[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
static void (*case_fn)(void);
static const char *case_words;

static void log_case(void)
{
	char text[CM_LOG_MAX];

	cm_take_log(case_fn, text);
	if (!strstr(text, case_words))
		fail_msg("not in the log: %s\n%s", case_words, text);
	assert_non_null(strstr(text, " error: "));
	assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
}

/* Runs the case with the list of ANYWARP_MPA in a process of its own, whose log is one line with the words. */
static void expect_told(const char *list, void (*fn)(void), const char *words)
{
	case_fn = fn;
	case_words = words;
	in_child(list, log_case);
}

static void initiate_without_common_rtr(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_reply(half.fd, C, SEND | WRITE, 16);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EOPNOTSUPP);
	half_close(&half);
}

static void told__initiator_without_common_rtr(void **state)
{
	(void)state;
	expect_told(
		"rtr=read", initiate_without_common_rtr,
		" cause no ready-to-receive message in common: this end sends read, the peer "
		"takes send+write: give both ends one in common by rtr= in --mpa (ANYWARP_MPA), "
		"or leave rtr out at both\n");
}

static void hear_terminate(uint8_t code)
{
	const uint8_t ulpdu[22] = { 0x41, 0x47, [9] = 2, [13] = 1, [18] = 0x20, [19] = code };
	uint8_t frame[ENHANCED];
	struct half half;

	half_open_server(&half);
	send_request(half.fd, C, WRITE, 16);
	get_reply(&half, frame);
	raw_send_fpdu(half.fd, ulpdu, sizeof(ulpdu));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, code == 7 ? -EOPNOTSUPP : -ENOMEM);
	half_close(&half);
}

static void hear_no_rtr(void)
{
	hear_terminate(7);
}

static void hear_small_ird(void)
{
	hear_terminate(6);
}

static void told__responder_hears_of_it(void **state)
{
	(void)state;
	expect_told(
		"rtr=read", hear_no_rtr,
		" cause it sends no ready-to-receive message that this end takes: give both ends "
		"one in common by rtr= in --mpa (ANYWARP_MPA), or leave rtr out at both\n");
	expect_told(
		"", hear_small_ird,
		" cause it takes fewer inbound reads than this end wants: lower initiator_depth "
		"here, or raise responder_resources there\n");
}

static void initiate_with_small_ird(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_reply(half.fd, C, WRITE, 300);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM);
	half_close(&half);
}

static void told__initiator_with_small_ird(void **state)
{
	(void)state;
	expect_told("", initiate_with_small_ird,
		    " cause the peer wants 300 inbound reads, and this end takes 128: raise "
		    "responder_resources here, lower initiator_depth there, or leave them to the "
		    "programs by ird_ord=ulp in --mpa (ANYWARP_MPA) here\n");
}

static void meet_another_initiator(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	send_request(half.fd, C, WRITE, 4);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

static void meet_another_protocol(void)
{
	uint8_t frame[ENHANCED];
	struct half half;

	get_request(&half, frame);
	raw_send(half.fd, other, sizeof(other));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

static void told__peer_of_another_kind(void **state)
{
	(void)state;
	expect_told("", meet_another_initiator,
		    ": both ends are initiators: one of the two programs has to listen\n");
	expect_told("", meet_another_protocol, FAILED);
	expect_told("", meet_another_protocol,
		    " cause the peer does not speak mpa: is its program an rdma one, and run by "
		    "anywarp, or over another iwarp?\n");
}

static void hear_revision_2(void)
{
	uint8_t frame[PLAIN];
	struct half half;

	half_connect_client(&half, NULL);
	raw_recv(half.fd, frame, sizeof(frame));
	send_reply(half.fd, C, WRITE, 4);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

static void hear_revision_1(void)
{
	static const uint8_t reply[PLAIN] = "MPA ID Rep Frame\x40\x01\0";
	struct half half;

	given_open_initiator(&half);
	raw_send(half.fd, reply, sizeof(reply));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

static void told__revision(void **state)
{
	(void)state;
	expect_told("revision=1", hear_revision_2,
		    " cause mpa revision 2 not supported, only 1 to 1: leave revision=1 out of "
		    "ANYWARP_MPA\n");
	expect_told(
		"", hear_revision_1,
		" cause a reply of mpa revision 1 to a request of revision 2: set revision=1 in "
		"--mpa (ANYWARP_MPA) here\n");
}

static void wait_in_vain(void)
{
	struct half half;

	cm_set_startup_ms(SHORT_MS);
	half_open_client(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	half_close(&half);
}

static void told__no_reply(void **state)
{
	(void)state;
	expect_told("", wait_in_vain,
		    " cause no mpa reply in time: does an rdma program listen on this port, and "
		    "accept?\n");
}

static struct rdma_conn_param *param_of(uint8_t depth)
{
	static struct rdma_conn_param param;

	param.initiator_depth = depth;
	return &param;
}

static void ask_for_many_reads(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_resolved(channel, "127.0.0.1", 1);

	assert_int_equal(rdma_connect(id, param_of(200)), -1);
	assert_int_equal(errno, EINVAL);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}

static void ask_with_much_data(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	uint8_t data[255] = { 0 };
	struct rdma_conn_param param = { .private_data = data, .private_data_len = sizeof(data) };
	struct rdma_cm_id *id;

	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &found), 0);
	free(found->ai_connect);
	found->ai_connect = calloc(1, sizeof(data));
	found->ai_connect_len = sizeof(data);
	assert_int_equal(rdma_create_ep(&id, found, NULL, &attr), 0);
	assert_int_equal(rdma_connect(id, &param), -1);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(found);
}

static void told__own_wishes(void **state)
{
	(void)state;
	expect_told("", ask_for_many_reads,
		    " error: initiator_depth 200 refused: the device has 128 reads at once "
		    "(max_qp_rd_atom): ask for no more (perftest: -o)\n");
	expect_told("", ask_with_much_data,
		    " cause private data of 510 bytes, 508 at the most: give less of it to "
		    "rdma_connect, or to rdma_getaddrinfo (ai_connect)\n");
}

static void hear_strangers(void)
{
	struct half half;

	half_open_server(&half);
	raw_send(half.fd, other, sizeof(other));
	raw_expect_end(half.fd);
	half_close(&half);
}

static void log_strangers(void)
{
	char text[CM_LOG_MAX];

	cm_take_log(hear_strangers, text);
	assert_string_equal(text, "");
}

static void told__nothing_of_strangers(void **state)
{
	(void)state;
	in_child("", log_strangers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told__initiator_without_common_rtr),
		cmocka_unit_test(told__responder_hears_of_it),
		cmocka_unit_test(told__initiator_with_small_ird),
		cmocka_unit_test(told__peer_of_another_kind),
		cmocka_unit_test(told__revision),
		cmocka_unit_test(told__no_reply),
		cmocka_unit_test(told__own_wishes),
		cmocka_unit_test(told__nothing_of_strangers),
	};

	unsetenv("ANYWARP_LOG");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
