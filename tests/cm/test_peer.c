// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp_cm_is_secure and the peer's certificate and name, on both ends. tests/system/test_tls_peer.py runs this program
// under TLS as well, and names what is to be found: PEER_CERTIFICATE, a file, and PEER_NAME.
#include "anywarp/cm.h"
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DER_MAX 8192

static void assert_fails(ssize_t result, int err)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, err);
}

static void assert_none(struct rdma_cm_id *id, int err)
{
	uint8_t octets[DER_MAX];

	assert_fails(anywarp_cm_peer_certificate(id, octets, sizeof(octets)), err);
	assert_fails(anywarp_cm_peer_certificate(id, NULL, 0), err);
	assert_fails(anywarp_cm_peer_name(id, (char *)octets, sizeof(octets)), err);
}

static void assert_proven(struct rdma_cm_id *id, const char *file, const char *name)
{
	uint8_t expected[DER_MAX], der[DER_MAX];
	FILE *from = fopen(file, "r");
	char text[256];
	size_t len;

	assert_non_null(from);
	len = fread(expected, 1, sizeof(expected), from);
	fclose(from);
	assert_int_equal(anywarp_cm_is_secure(id), 1);
	assert_int_equal(anywarp_cm_peer_certificate(id, NULL, 0), len);
	memset(der, 0, sizeof(der));
	assert_fails(anywarp_cm_peer_certificate(id, der, len - 1), ERANGE);
	assert_int_equal(der[0], 0);
	assert_fails(anywarp_cm_peer_certificate(id, NULL, len), EINVAL);
	assert_int_equal(anywarp_cm_peer_certificate(id, der, len), len);
	assert_memory_equal(der, expected, len);
	assert_int_equal(der[len], 0);
	assert_int_equal(anywarp_cm_peer_name(id, NULL, 0), strlen(name) + 1);
	assert_fails(anywarp_cm_peer_name(id, text, strlen(name)), ERANGE);
	assert_int_equal(anywarp_cm_peer_name(id, text, sizeof(text)), strlen(name) + 1);
	assert_string_equal(text, name);
}

static void assert_peer(struct rdma_cm_id *id)
{
	const char *file = getenv("PEER_CERTIFICATE");

	if (file) {
		assert_proven(id, file, getenv("PEER_NAME"));
		return;
	}
	assert_int_equal(anywarp_cm_is_secure(id), 0);
	assert_none(id, ENODATA);
}

static void assert_not_connected(struct rdma_cm_id *id)
{
	assert_fails(anywarp_cm_is_secure(id), ENOTCONN);
	assert_none(id, ENOTCONN);
}

static void anywarp_cm_peer__from_the_request_to_the_end(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_not_connected(ends.listener);
	assert_not_connected(ends.client);
	cm_ends_request(&ends);
	assert_peer(ends.server);
	cm_ends_accept(&ends);
	assert_peer(ends.server);
	assert_peer(ends.client);
	cm_ends_disconnect(&ends);
	assert_peer(ends.server);
	assert_peer(ends.client);
	cm_ends_close(&ends);
}

static struct cm_ends parents;

static void ask_in_child(void)
{
	assert_fails(anywarp_cm_is_secure(parents.client), EINVAL);
	assert_none(parents.client, EINVAL);
}

static void anywarp_cm_peer__is_the_parents_alone(void **state)
{
	(void)state;
	assert_fails(anywarp_cm_is_secure(NULL), EINVAL);
	assert_none(NULL, EINVAL);
	cm_ends_open(&parents, "127.0.0.1");
	cm_ends_request(&parents);
	cm_ends_accept(&parents);
	cm_pass_in_child(ask_in_child);
	assert_peer(parents.client);
	cm_ends_disconnect(&parents);
	cm_ends_close(&parents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anywarp_cm_peer__from_the_request_to_the_end),
		cmocka_unit_test(anywarp_cm_peer__is_the_parents_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
