// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls of rdma_cm that are newer than Debian 12's rdma-core: names resolved into an event, and events of the program's own.
#include "cm.h"

#include "rdmacm/newer.h"

#include <errno.h>
#include <string.h>

/* Under names of our own, because newer headers declare them. */
int resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
		     const struct rdma_addrinfo *hints) __asm__("rdma_resolve_addrinfo");
int query_addrinfo(struct rdma_cm_id *id,
		   struct rdma_addrinfo **info) __asm__("rdma_query_addrinfo");
int write_cm_event(struct rdma_cm_id *id, int event, int status,
		   uint64_t arg) __asm__("rdma_write_cm_event");

static struct rdma_cm_id *id_make(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

#define FAILS(call, code)                        \
	do {                                     \
		errno = 0;                       \
		assert_int_equal((call), -1);    \
		assert_int_equal(errno, (code)); \
	} while (0)

static void resolve_addrinfo__event_then_list(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = AW_CM_RAI_DNS, .ai_port_space = RDMA_PS_TCP };
	struct sockaddr_storage dst = cm_address("127.0.0.1", 7471);
	struct rdma_cm_id *id = id_make();
	struct rdma_addrinfo *res;

	(void)state;
	FAILS(query_addrinfo(id, &res), ENOENT);
	assert_int_equal(resolve_addrinfo(id, "127.0.0.1", "7471", &hints), 0);
	FAILS(resolve_addrinfo(id, "127.0.0.1", "7471", &hints), EBUSY);
	cm_expect_ack(cm_channel, (enum rdma_cm_event_type)AW_CM_EVENT_ADDRINFO_RESOLVED, 0);
	assert_int_equal(query_addrinfo(id, &res), 0);
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(res);
	FAILS(query_addrinfo(id, &res), ENOENT);
	/* What nobody asks for goes with the id. */
	assert_int_equal(resolve_addrinfo(id, "::1", "7471", NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void resolve_addrinfo__of_a_synchronous_id(void **state)
{
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(resolve_addrinfo(id, "127.0.0.1", "7471", NULL), 0);
	assert_int_equal(id->event->event, AW_CM_EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(query_addrinfo(id, &res), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* After a failure the id may ask again. */
static void resolve_addrinfo__failures(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = AW_CM_RAI_SA };
	struct rdma_cm_id *id = id_make();
	struct rdma_addrinfo *res;

	(void)state;
	FAILS(resolve_addrinfo(NULL, "127.0.0.1", "7471", NULL), EINVAL);
	FAILS(resolve_addrinfo(id, NULL, "7471", &hints), EOPNOTSUPP);
	hints.ai_flags |= AW_CM_RAI_DNS;
	FAILS(resolve_addrinfo(id, NULL, "7471", &hints), EOPNOTSUPP);
	hints.ai_flags = RAI_NUMERICHOST;
	FAILS(resolve_addrinfo(id, "no address", "7471", &hints), ENOENT);
	hints.ai_port_space = RDMA_PS_IPOIB;
	FAILS(resolve_addrinfo(id, "127.0.0.1", "7471", &hints), EPROTONOSUPPORT);
	FAILS(query_addrinfo(id, NULL), EINVAL);
	FAILS(query_addrinfo(id, &res), ENOENT);
	cm_expect_none(cm_channel);
	assert_int_equal(resolve_addrinfo(id, "127.0.0.1", "7471", NULL), 0);
	cm_expect_ack(cm_channel, (enum rdma_cm_event_type)AW_CM_EVENT_ADDRINFO_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void write_cm_event__comes_back(void **state)
{
	const uint64_t arg = UINT64_C(0x0123456789abcdef);
	struct rdma_cm_id *id = id_make();
	struct rdma_cm_event *event;

	(void)state;
	FAILS(write_cm_event(NULL, AW_CM_EVENT_USER, 0, 0), EINVAL);
	FAILS(write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	FAILS(write_cm_event(id, AW_CM_EVENT_INTERNAL, 0, 0), EINVAL);
	cm_expect_none(cm_channel);
	assert_int_equal(write_cm_event(id, AW_CM_EVENT_USER, -7, arg), 0);
	event = cm_expect(cm_channel, (enum rdma_cm_event_type)AW_CM_EVENT_USER, -7);
	assert_ptr_equal(event->id, id);
	assert_memory_equal(&event->param, &arg, sizeof(arg));
	assert_string_equal(rdma_event_str(event->event), "RDMA_CM_EVENT_USER");
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolve_addrinfo__event_then_list),
		cmocka_unit_test(resolve_addrinfo__of_a_synchronous_id),
		cmocka_unit_test(resolve_addrinfo__failures),
		cmocka_unit_test(write_cm_event__comes_back),
	};

	return cmocka_run_group_tests(tests, cm_open_channel, cm_close_channel);
}
