// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that locks all memory that it has and will have, with the RLIMIT_MEMLOCK that a user has by default.
#define _GNU_SOURCE // setresuid
#include "cm.h"

#include <grp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOCKED_MAX (8u << 20)
#define NOBODY 65534

/* A user without CAP_IPC_LOCK, for whom the limit holds. */
static void become_nobody(void)
{
	if (geteuid() != 0)
		return;
	assert_int_equal(setgroups(0, NULL), 0);
	assert_int_equal(setresgid(NOBODY, NOBODY, NOBODY), 0);
	assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
}

static int lock_memory(void **state)
{
	const struct rlimit limit = { LOCKED_MAX, LOCKED_MAX };

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	become_nobody();
	assert_int_equal(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
	return 0;
}

static void send_text(struct cm_ends *ends)
{
	char from[] = "locked", to[sizeof(from)] = "";
	struct ibv_mr *mr = rdma_reg_msgs(ends->server, to, sizeof(to));
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(ends->server, NULL, to, sizeof(to), mr), 0);
	assert_int_equal(
		rdma_post_send(ends->client, NULL, from, sizeof(from), NULL, IBV_SEND_INLINE), 0);
	assert_int_equal(rdma_get_recv_comp(ends->server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(to, from);
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

static void connection__in_locked_memory(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	send_text(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(connection__in_locked_memory) };

	return cmocka_run_group_tests(tests, lock_memory, NULL);
}
