// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// riomap, riounmap, riowrite.
#include "rs.h"

#include <pthread.h>
#include <string.h>

#define SIZE 5000

static void connect_ends(struct rs_ends *ends)
{
	struct sockaddr_in addr = rs_address(rs_port(ends->listener));

	assert_int_equal(rconnect(ends->client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ends->server = raccept(ends->listener, NULL, NULL);
}

/* Both may map eight buffers. */
static void open_ends(struct rs_ends *ends)
{
	ends->listener = rs_listener(1);
	ends->client = rs_socket();
	rs_set(ends->listener, SOL_RDMA, RDMA_IOMAPSIZE, 8);
	rs_set(ends->client, SOL_RDMA, RDMA_IOMAPSIZE, 8);
	connect_ends(ends);
}

/* What fd did before, the peer has seen when this returns. */
static void tell(int fd, int peer)
{
	char octet;

	rs_send_all(fd, "t", 1);
	rs_recv_all(peer, &octet, 1);
}

static void riowrite__lands_where_it_was_mapped(void **state)
{
	static char target[SIZE], source[SIZE];
	struct rs_ends ends;

	(void)state;
	open_ends(&ends);
	memset(source, 's', SIZE);
	assert_int_equal(riomap(ends.server, target, SIZE, PROT_WRITE, 0, 70000), 70000);
	tell(ends.server, ends.client);
	assert_int_equal(riowrite(ends.client, source, 10, 69999, 0), 0);
	assert_int_equal(riowrite(ends.client, source, 10, 70000 + SIZE, 0), 0);
	assert_int_equal(riowrite(ends.client, source, 100, 70000 + SIZE - 30, 0), 30);
	assert_int_equal(riowrite(ends.client, source, 7, 70100, 0), 7);
	tell(ends.client, ends.server);
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(target[i], (i >= 100 && i < 107) || i >= SIZE - 30 ? 's' : 0);
	assert_int_equal(riounmap(ends.server, target, SIZE), 0);
	rs_fails(riounmap(ends.server, target, SIZE), EINVAL);
	rs_close(&ends);
}

static void riomap__as_many_as_the_peer_has_room_for(void **state)
{
	static char targets[9][SIZE];
	struct rs_ends ends;

	(void)state;
	open_ends(&ends);
	for (int i = 0; i < 8; i++)
		assert_int_equal(riomap(ends.server, targets[i], SIZE, PROT_WRITE, 0, -1),
				 (intptr_t)targets[i]);
	rs_fails(riomap(ends.server, targets[8], SIZE, PROT_WRITE, 0, -1), ENOMEM);
	assert_int_equal(riomap(ends.server, targets[8], SIZE, PROT_NONE, 0, 5), 5);
	assert_int_equal(riounmap(ends.server, targets[8], SIZE), 0);
	assert_int_equal(riounmap(ends.server, targets[3], SIZE), 0);
	assert_int_equal(riomap(ends.server, targets[8], SIZE, PROT_WRITE, 0, 5), 5);
	tell(ends.server, ends.client);
	assert_int_equal(riowrite(ends.client, "eight", 5, 5, 0), 5);
	tell(ends.client, ends.server);
	assert_memory_equal(targets[8], "eight", 5);
	rs_fails(riomap(ends.server, targets[0], 1, PROT_WRITE | PROT_EXEC, 0, 5), EINVAL);
	rs_close(&ends);
}

static void riomap__where_the_peer_wants_none(void **state)
{
	struct rs_ends ends;
	char target[8];

	(void)state;
	rs_open(&ends);
	rs_fails(riomap(ends.server, target, 8, PROT_WRITE, 0, 0), ENOMEM);
	rs_close(&ends);
}

static void *map_and_unmap(void *arg)
{
	static char targets[4][SIZE];
	static _Atomic int threads;
	char *target = targets[threads++ % 4];

	for (int i = 0; i < 500; i++) {
		off_t offset = riomap(*(int *)arg, target, SIZE, PROT_WRITE, 0, -1);

		assert_int_equal(offset, (intptr_t)target);
		assert_int_equal(riounmap(*(int *)arg, target, SIZE), 0);
	}
	return NULL;
}

static void *send_much(void *arg)
{
	for (int i = 0; i < 2000; i++)
		rs_send_all(*(int *)arg, "0123456789", 10);
	return NULL;
}

/* What waits to be told to the peer is unmapped meanwhile, and the stream goes on. */
static void riounmap__of_what_still_waits(void **state)
{
	struct rs_ends ends;
	pthread_t threads[4];
	char octets[10];

	(void)state;
	open_ends(&ends);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i ? map_and_unmap : send_much, &ends.server);
	for (int i = 0; i < 2000; i++) {
		rs_recv_all(ends.client, octets, 10);
		assert_memory_equal(octets, "0123456789", 10);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	rs_close(&ends);
}

static void *write_to_map(void *end)
{
	return (void *)(intptr_t)riowrite(*(int *)end, "map", 3, 0, 0);
}

/* The stream's octets wait for the peer, whose buffer they have filled; the send buffer has room. */
static void riowrite__sleeps_behind_octets_that_wait(void **state)
{
	static char octets[1 << 16], target[3];
	struct rs_ends ends;
	pthread_t thread;
	void *result;

	(void)state;
	ends.listener = rs_listener(1);
	rs_set(ends.listener, SOL_SOCKET, SO_RCVBUF, 8192);
	ends.client = rs_socket();
	rs_set(ends.client, SOL_RDMA, RDMA_IOMAPSIZE, 8);
	connect_ends(&ends);
	assert_int_equal(riomap(ends.server, target, 3, PROT_WRITE, 0, 0), 0);
	tell(ends.server, ends.client);
	rs_send_all(ends.client, octets, sizeof(octets));
	rs_fails(riowrite(ends.client, "map", 3, 0, MSG_DONTWAIT), EWOULDBLOCK);
	pthread_create(&thread, NULL, write_to_map, &ends.client);
	rs_until_others_sleep();
	rs_recv_all(ends.server, octets, sizeof(octets));
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, 3);
	tell(ends.client, ends.server);
	assert_memory_equal(target, "map", 3);
	rs_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(riowrite__lands_where_it_was_mapped, rs_guard),
		cmocka_unit_test_setup(riowrite__sleeps_behind_octets_that_wait, rs_guard),
		cmocka_unit_test_setup(riomap__as_many_as_the_peer_has_room_for, rs_guard),
		cmocka_unit_test_setup(riomap__where_the_peer_wants_none, rs_guard),
		cmocka_unit_test_setup(riounmap__of_what_still_waits, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
