// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The index of a P_Key in a port's table.
#include <infiniband/verbs.h>

// ibv_port_attr.pkey_tbl_len is 16 bits wide: no table is longer.
enum {
	PKEYS_MAX = 65536
};

// Returns the index, or -1 when the port has no such P_Key.
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	for (int index = 0; index < PKEYS_MAX; index++) {
		__be16 entry;

		if (ibv_query_pkey(context, port_num, index, &entry))
			return -1;
		if (entry == pkey)
			return index;
	}
	return -1;
}
