// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "record_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool record_tls_is_there(void)
{
	const char *why = NULL;
	bool there = aw_libcrypto_load(&why);

	if (!there)
		printf("no TLS here: %s\n", why);
	return there;
}

struct aw_record_secrets record_tls_secrets(unsigned suite, bool is_client)
{
	struct aw_record_secrets secrets = {
		.suite = (uint16_t)(AW_SUITE_AES_128_GCM_SHA256 + suite),
		.is_client = is_client,
	};

	memset(secrets.client, 0xc1, sizeof(secrets.client));
	memset(secrets.server, 0x5e, sizeof(secrets.server));
	return secrets;
}

void record_tls_begin(struct aw_record records[2], const int fds[2], unsigned suite)
{
	for (int i = 0; i < 2; i++) {
		struct aw_record_secrets secrets = record_tls_secrets(suite, i == 0);

		if (suite >= RECORD_TLS_SUITES || !record_tls_is_there())
			aw_record_init(&records[i]);
		else if (aw_record_secure(&records[i], fds[i], &secrets) != 0)
			abort();
	}
}
