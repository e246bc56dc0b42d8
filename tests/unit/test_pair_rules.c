// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who calls whom, which Request is the peer's, and which of two connections stays.
#include "net/roce/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

static struct aw_pair_end end_of(const char *ip, uint32_t qpn)
{
	struct aw_pair_end end = { .qpn = qpn };
	struct in_addr in;

	if (inet_pton(AF_INET, ip, &in) == 1) {
		end.gid[10] = end.gid[11] = 0xff;
		memcpy(end.gid + 12, &in, 4);
	} else {
		assert_int_equal(inet_pton(AF_INET6, ip, end.gid), 1);
	}
	return end;
}

static struct aw_pair pair_of(const char *a, uint32_t a_qpn, const char *b, uint32_t b_qpn)
{
	return (struct aw_pair){ .local = end_of(a, a_qpn), .remote = end_of(b, b_qpn) };
}

static struct aw_pair other_way(const struct aw_pair *pair)
{
	return (struct aw_pair){ .local = pair->remote, .remote = pair->local, .type = pair->type };
}

/* The Request that the peer of told sends. */
static struct pair request_of_peer(const struct aw_pair *told)
{
	struct pair request = {
		.type = (uint8_t)told->type,
		.src_qpn = told->remote.qpn,
		.dst_qpn = told->local.qpn,
	};

	memcpy(request.src_gid, told->remote.gid, GID_LEN);
	return request;
}

static const struct sockaddr_storage nowhere; /* the address of a Request matters on a link alone */

static const struct {
	const char *a, *b;
	uint32_t a_qpn, b_qpn;
} pairs[] = {
	{ "192.0.2.1", "192.0.2.2", 5, 5 },   { "192.0.2.2", "192.0.2.1", 5, 5 },
	{ "192.0.2.1", "192.0.2.1", 5, 6 },   { "192.0.2.1", "192.0.2.1", 0xffffff, 0x100 },
	{ "2001:db8::1", "192.0.2.1", 5, 5 }, { "fe80::1", "fe80::2", 9, 5 },
	{ "192.0.2.1", "192.0.2.200", 9, 5 },
};

#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

static struct aw_pair pair_at(size_t i)
{
	return pair_of(pairs[i].a, pairs[i].a_qpn, pairs[i].b, pairs[i].b_qpn);
}

static void is_caller__exactly_one_of_two(void **state)
{
	(void)state;
	for (size_t i = 0; i < PAIRS; i++) {
		struct aw_pair here = pair_at(i), there = other_way(&here);

		assert_true(aw_pair_is_caller(&here) != aw_pair_is_caller(&there));
		assert_false(aw_pair_is_self(&here));
	}
}

static void is_self__same_gid_and_qpn(void **state)
{
	struct aw_pair self = pair_of("192.0.2.1", 5, "192.0.2.1", 5);

	(void)state;
	assert_true(aw_pair_is_self(&self));
	assert_false(aw_pair_is_caller(&self));
}

/*
 * Both have asked, and each hears the other's Request: one accepts and gives up its own, the other one
 * keeps its own. With any other outcome there were two connections, or none.
 */
static void judge__of_two_calls_one_stays(void **state)
{
	(void)state;
	for (size_t i = 0; i < PAIRS; i++) {
		struct aw_pair here = pair_at(i), there = other_way(&here);
		struct pair to_here = request_of_peer(&here), to_there = request_of_peer(&there);
		bool here_accepts = aw_pair_judge(AW_PAIR_ASKED, &here, &to_here, &nowhere) ==
				    AW_PAIR_ACCEPT;
		bool there_accepts = aw_pair_judge(AW_PAIR_ASKED, &there, &to_there, &nowhere) ==
				     AW_PAIR_ACCEPT;

		assert_true(here_accepts != there_accepts);
		assert_true(there_accepts == aw_pair_is_caller(&here));
	}
}

/* A call that TCP has not brought to the peer may never get there: a firewall. */
static void judge__a_call_under_way_gives_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < PAIRS; i++) {
		struct aw_pair here = pair_at(i);
		struct pair request = request_of_peer(&here);

		assert_int_equal(aw_pair_judge(AW_PAIR_CALLING, &here, &request, &nowhere),
				 AW_PAIR_ACCEPT);
		assert_int_equal(aw_pair_judge(AW_PAIR_WAITING, &here, &request, &nowhere),
				 AW_PAIR_ACCEPT);
	}
}

static void judge__a_stranger_is_rejected(void **state)
{
	static const enum aw_pair_phase phases[] = { AW_PAIR_WAITING, AW_PAIR_CALLING,
						     AW_PAIR_ASKED };
	struct aw_pair told = pair_at(0);
	struct pair qpn = request_of_peer(&told), gid = qpn;

	(void)state;
	qpn.src_qpn++;
	gid.src_gid[15]++;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(aw_pair_judge(phases[i], &told, &qpn, &nowhere), AW_PAIR_REJECT);
		assert_int_equal(aw_pair_judge(phases[i], &told, &gid, &nowhere), AW_PAIR_REJECT);
	}
	assert_int_equal(aw_pair_match(&told, &qpn, &nowhere), PAIR_OTHER_PEER);
	assert_int_equal(aw_pair_match(&told, &gid, &nowhere), PAIR_OTHER_PEER);
	qpn = request_of_peer(&told);
	qpn.dst_qpn++;
	assert_int_equal(aw_pair_match(&told, &qpn, &nowhere), PAIR_NO_QP);
}

/* A type of a later version, too, is none that talks to a QP of this one. */
static void match__types(void **state)
{
	static const struct {
		enum pair_type here;
		uint8_t there;
	} talks[] = {
		{ PAIR_RC, PAIR_RC },
		{ PAIR_UC, PAIR_UC },
		{ PAIR_XRC_INITIATOR, PAIR_XRC_TARGET },
		{ PAIR_XRC_TARGET, PAIR_XRC_INITIATOR },
	};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (int there = 0; there <= UINT8_MAX; there++) {
			struct aw_pair told = pair_at(0);
			struct pair request = request_of_peer(&told);
			bool fits = there == talks[i].there;

			told.type = talks[i].here;
			request.type = (uint8_t)there;
			assert_int_equal(aw_pair_match(&told, &request, &nowhere),
					 fits ? PAIR_OK : PAIR_OTHER_TYPE);
			assert_int_equal(aw_pair_judge(AW_PAIR_WAITING, &told, &request, &nowhere),
					 fits ? AW_PAIR_ACCEPT : AW_PAIR_REJECT);
		}
	}
}

/* Another host may have the address on another link. */
static void match__of_a_link_local_address_on_its_link(void **state)
{
	struct aw_pair told = pair_of("fe80::2", 9, "fe80::1", 5);
	struct pair request = request_of_peer(&told);
	struct sockaddr_storage from;

	(void)state;
	told.remote.scope = 7;
	aw_pair_address(&told.remote, 0, &from);
	assert_int_equal(aw_pair_match(&told, &request, &from), PAIR_OK);
	((struct sockaddr_in6 *)&from)->sin6_scope_id = 8;
	assert_int_equal(aw_pair_match(&told, &request, &from), PAIR_OTHER_PEER);
	assert_int_equal(aw_pair_judge(AW_PAIR_WAITING, &told, &request, &from), AW_PAIR_REJECT);
	told.remote.scope = 0;
	assert_int_equal(aw_pair_match(&told, &request, &from), PAIR_OK);
}

/* Also one that is connected, to whomever: the peer may be ahead. */
static void judge__a_qp_that_was_told_nothing_yet_lets_wait(void **state)
{
	static const enum aw_pair_phase phases[] = { AW_PAIR_UNTOLD, AW_PAIR_JOINED, AW_PAIR_OVER };
	struct aw_pair told = pair_at(0);
	struct pair request = request_of_peer(&told);

	(void)state;
	request.src_qpn++;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(aw_pair_judge(phases[i], &told, &request, &nowhere), AW_PAIR_HOLD);
}

static void address__and_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < PAIRS; i++) {
		struct aw_pair pair = pair_at(i);
		struct pair request = request_of_peer(&pair);
		struct sockaddr_storage addr;

		aw_pair_address(&pair.remote, 4660, &addr);
		assert_true(aw_pair_is_from(&request, &addr));
		request.src_gid[15]++;
		assert_false(aw_pair_is_from(&request, &addr));
	}
}

static void address__families_ports_and_scopes(void **state)
{
	struct aw_pair_end ipv4 = end_of("192.0.2.1", 0), link = end_of("fe80::1", 0);
	struct aw_pair_end global = end_of("2001:db8::1", 0);
	struct sockaddr_storage addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	(void)state;
	aw_pair_address(&ipv4, 4660, &addr);
	assert_int_equal(addr.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&addr)->sin_port, htons(4660));
	link.scope = global.scope = 7;
	aw_pair_address(&link, 0, &addr);
	assert_int_equal(addr.ss_family, AF_INET6);
	assert_int_equal(in6->sin6_scope_id, 7);
	assert_int_equal(in6->sin6_port, 0);
	aw_pair_address(&global, 0, &addr);
	assert_int_equal(in6->sin6_scope_id, 0);
}

/* An accepted socket of both families has ::ffff:a.b.c.d for IPv4. */
static void is_from__mapped_address(void **state)
{
	struct aw_pair pair = pair_at(0);
	struct pair request = request_of_peer(&pair);
	struct sockaddr_storage addr = { .ss_family = AF_INET6 };
	struct sockaddr_storage other = { .ss_family = AF_UNIX };

	(void)state;
	memcpy(&((struct sockaddr_in6 *)&addr)->sin6_addr, pair.remote.gid, GID_LEN);
	assert_true(aw_pair_is_from(&request, &addr));
	assert_false(aw_pair_is_from(&request, &other));
}

static void is_later__wraps(void **state)
{
	(void)state;
	assert_true(aw_pair_is_later(2, 1));
	assert_false(aw_pair_is_later(1, 2));
	assert_false(aw_pair_is_later(1, 1));
	assert_true(aw_pair_is_later(0, UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_caller__exactly_one_of_two),
		cmocka_unit_test(is_self__same_gid_and_qpn),
		cmocka_unit_test(judge__of_two_calls_one_stays),
		cmocka_unit_test(judge__a_call_under_way_gives_way),
		cmocka_unit_test(judge__a_stranger_is_rejected),
		cmocka_unit_test(match__types),
		cmocka_unit_test(match__of_a_link_local_address_on_its_link),
		cmocka_unit_test(judge__a_qp_that_was_told_nothing_yet_lets_wait),
		cmocka_unit_test(address__and_back),
		cmocka_unit_test(address__families_ports_and_scopes),
		cmocka_unit_test(is_from__mapped_address),
		cmocka_unit_test(is_later__wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
