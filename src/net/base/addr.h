// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Socket addresses as words for log lines: "192.0.2.1:18515", "[2001:db8::1]:18515".
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <sys/socket.h>

#define AW_ADDR_TEXT_MAX 80 /* bytes with the terminating zero: a scope's name included */

struct aw_addr_text {
	char text[AW_ADDR_TEXT_MAX];
};

/* Never fails: a family other than IPv4 and IPv6 gives "unknown". */
struct aw_addr_text aw_addr_text(const struct sockaddr_storage *addr);

/* Bytes of the address by its family; 0 for a family other than IPv4 and IPv6. */
socklen_t aw_addr_len(const struct sockaddr *addr);

#endif
