// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A line of rules compares these: an address with its prefix length, and a range of ports. An IPv4 address mapped into IPv6 is
// an IPv4 address.
#ifndef BASE_PREFIX_H
#define BASE_PREFIX_H

#include "base/slice.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_PREFIX_TEXT_MAX (INET6_ADDRSTRLEN + 4)
#define AW_PREFIX_WHY_MAX 160

/* An IPv4 address is in the first four bytes. Bits beyond the prefix are zero. */
struct aw_prefix {
	sa_family_t family; /* AF_UNSPEC: every address, known or not */
	uint8_t bits;
	uint8_t bytes[16];
};

/* Inclusive; first 0: every port. */
struct aw_ports {
	uint16_t first, last;
};

/* Reads ADDR[/LEN], the value of key. False: why has the fault and what is allowed, without the text. */
__attribute__((warn_unused_result)) bool aw_prefix_read(struct aw_slice text, const char *key,
							struct aw_prefix *prefix,
							char why[AW_PREFIX_WHY_MAX]);
void aw_prefix_print(const struct aw_prefix *prefix, char text[AW_PREFIX_TEXT_MAX]);

/* The whole address, and its port in host byte order, 0 where there is none. False: no IP address. */
bool aw_prefix_of(const struct sockaddr *address, struct aw_prefix *prefix, uint16_t *port);

/* address: by aw_prefix_of. */
bool aw_prefix_has(const struct aw_prefix *prefix, const struct aw_prefix *address);

/* Reads N or N-M, from 1 to 65535. */
__attribute__((warn_unused_result)) bool aw_ports_read(struct aw_slice text, struct aw_ports *ports,
						       char why[AW_PREFIX_WHY_MAX]);
bool aw_ports_have(const struct aw_ports *ports, uint16_t port);

#endif
