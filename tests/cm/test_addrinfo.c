// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_getaddrinfo, and lists that a program made itself.
#include "cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static void getaddrinfo__active(void **state)
{
	struct sockaddr_storage dst = cm_address("127.0.0.1", 7471);
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_dst_len, sizeof(struct sockaddr_in));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(struct sockaddr_in));
	assert_int_equal(res->ai_src_len, 0);
	assert_null(res->ai_next);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_getaddrinfo("::1", "7471", NULL, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__active_with_source(void **state)
{
	struct sockaddr_storage src = cm_address("127.0.0.2", 0);
	struct rdma_addrinfo hints = { .ai_src_addr = (struct sockaddr *)&src,
				       .ai_src_len = sizeof(struct sockaddr_in) };
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &res), 0);
	assert_int_equal(res->ai_src_len, sizeof(struct sockaddr_in));
	assert_memory_equal(res->ai_src_addr, &src, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__passive(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_FAMILY,
				       .ai_family = AF_INET6 };
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	assert_true(res->ai_flags & RAI_PASSIVE);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_dst_len, 0);
	assert_int_equal(ntohs(((struct sockaddr_in6 *)res->ai_src_addr)->sin6_port), 7471);
	rdma_freeaddrinfo(res);
}

/* Looked at without RAI_FAMILY, too, as by rdma-core: perftest does not set it. */
static void getaddrinfo__family_without_its_flag(void **state)
{
	const int families[] = { AF_INET, AF_INET6 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_family = families[i] };
		struct rdma_addrinfo *res;

		assert_int_equal(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
		assert_int_equal(res->ai_family, families[i]);
		assert_null(res->ai_next);
		rdma_freeaddrinfo(res);
	}
}

static void getaddrinfo__hints_only(void **state)
{
	struct sockaddr_storage dst = cm_address("::1", 9);
	struct rdma_addrinfo hints = { .ai_dst_addr = (struct sockaddr *)&dst,
				       .ai_dst_len = sizeof(struct sockaddr_in6) };
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__errors(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *res = NULL;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_getaddrinfo("not.a.number", "1", &hints, &res), EAI_NONAME);
	hints.ai_port_space = RDMA_PS_UDP;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_SOCKTYPE);
	assert_int_equal(errno, EPROTONOSUPPORT);
	assert_null(res);
}

static void freeaddrinfo__of_a_program(void **state)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));

	(void)state;
	rai->ai_src_addr = malloc(sizeof(struct sockaddr_in));
	rai->ai_dst_addr = malloc(sizeof(struct sockaddr_in6));
	rai->ai_connect = malloc(1);
	rai->ai_route = malloc(1);
	rai->ai_src_canonname = strdup("a");
	rai->ai_next = calloc(1, sizeof(*rai));
	rdma_freeaddrinfo(rai);
	rdma_freeaddrinfo(NULL);
}

static void devices__list(void **state)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);

	(void)state;
	assert_non_null(list);
	assert_int_equal(count, 1);
	assert_non_null(list[0]);
	assert_null(list[1]);
	rdma_free_devices(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(getaddrinfo__active),
		cmocka_unit_test(getaddrinfo__active_with_source),
		cmocka_unit_test(getaddrinfo__passive),
		cmocka_unit_test(getaddrinfo__family_without_its_flag),
		cmocka_unit_test(getaddrinfo__hints_only),
		cmocka_unit_test(getaddrinfo__errors),
		cmocka_unit_test(freeaddrinfo__of_a_program),
		cmocka_unit_test(devices__list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
