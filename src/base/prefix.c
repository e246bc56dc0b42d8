// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/prefix.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define PORT_MAX 65535
#define V4_BITS 32
#define V6_BITS 128
#define MAPPED_BITS 96 /* before an IPv4 address in IPv6 */

static unsigned all_bits(sa_family_t family)
{
	return family == AF_INET ? V4_BITS : V6_BITS;
}

/* Returns the bits by which the prefix of an address is shorter as IPv4's. */
static unsigned unmap(struct aw_prefix *prefix)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (prefix->family != AF_INET6 || memcmp(prefix->bytes, mapped, sizeof(mapped)) != 0)
		return 0;
	prefix->family = AF_INET;
	memmove(prefix->bytes, prefix->bytes + sizeof(mapped), 4);
	memset(prefix->bytes + 4, 0, sizeof(prefix->bytes) - 4);
	return MAPPED_BITS;
}

static bool read_address(struct aw_slice text, struct aw_prefix *prefix, unsigned *bits_less)
{
	char string[INET6_ADDRSTRLEN];

	if (text.len >= sizeof(string) || memchr(text.at, '\0', text.len))
		return false;
	memcpy(string, text.at, text.len);
	string[text.len] = '\0';
	*prefix = (struct aw_prefix){ .family = AF_INET };
	if (inet_pton(AF_INET, string, prefix->bytes) != 1) {
		prefix->family = AF_INET6;
		if (inet_pton(AF_INET6, string, prefix->bytes) != 1)
			return false;
	}
	*bits_less = unmap(prefix);
	return true;
}

/* Zeroes the bits beyond the prefix. Returns whether any was set. */
static bool mask(struct aw_prefix *prefix)
{
	bool had = false;

	for (unsigned bit = prefix->bits; bit < V6_BITS; bit++) {
		uint8_t one = (uint8_t)(0x80 >> bit % 8);

		had = had || prefix->bytes[bit / 8] & one;
		prefix->bytes[bit / 8] &= (uint8_t)~one;
	}
	return had;
}

void aw_prefix_print(const struct aw_prefix *prefix, char text[AW_PREFIX_TEXT_MAX])
{
	size_t at;

	text[0] = '\0';
	inet_ntop(prefix->family, prefix->bytes, text, AW_PREFIX_TEXT_MAX);
	at = strlen(text);
	if (prefix->bits < all_bits(prefix->family))
		snprintf(text + at, AW_PREFIX_TEXT_MAX - at, "/%u", prefix->bits);
}

bool aw_prefix_read(struct aw_slice text, const char *key, struct aw_prefix *prefix,
		    char why[AW_PREFIX_WHY_MAX])
{
	struct aw_slice length = text;
	struct aw_slice address = aw_slice_cut(&length, '/');
	char right[AW_PREFIX_TEXT_MAX];
	struct aw_prefix found;
	unsigned long bits;
	unsigned less, all;

	if (!read_address(address, &found, &less)) {
		snprintf(why, AW_PREFIX_WHY_MAX,
			 "%s must be an IPv4 or IPv6 address, with or without /LEN, such as "
			 "192.0.2.0/24 or 2001:db8::1",
			 key);
		return false;
	}
	bits = all = all_bits(found.family) + less;
	if (address.len < text.len && (!aw_slice_number(length, all, &bits) || bits < less)) {
		snprintf(why, AW_PREFIX_WHY_MAX, "the prefix length of %s must be %u to %u", key,
			 less, all);
		return false;
	}
	found.bits = (uint8_t)(bits - less);
	if (mask(&found)) {
		aw_prefix_print(&found, right);
		snprintf(why, AW_PREFIX_WHY_MAX,
			 "%s has bits set beyond its prefix length: that would be %s", key, right);
		return false;
	}
	*prefix = found;
	return true;
}

bool aw_prefix_of(const struct sockaddr *address, struct aw_prefix *prefix, uint16_t *port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	*prefix = (struct aw_prefix){ .family = address->sa_family };
	if (address->sa_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		memcpy(prefix->bytes, &v4.sin_addr, sizeof(v4.sin_addr));
		*port = ntohs(v4.sin_port);
	} else if (address->sa_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		memcpy(prefix->bytes, &v6.sin6_addr, sizeof(v6.sin6_addr));
		*port = ntohs(v6.sin6_port);
		(void)unmap(prefix);
	} else {
		return false;
	}
	prefix->bits = (uint8_t)all_bits(prefix->family);
	return true;
}

bool aw_prefix_has(const struct aw_prefix *prefix, const struct aw_prefix *address)
{
	size_t whole = prefix->bits / 8;
	unsigned rest = prefix->bits % 8;

	if (prefix->family == AF_UNSPEC)
		return true;
	if (prefix->family != address->family || memcmp(address->bytes, prefix->bytes, whole) != 0)
		return false;
	return !rest || (address->bytes[whole] ^ prefix->bytes[whole]) >> (8 - rest) == 0;
}

bool aw_ports_read(struct aw_slice text, struct aw_ports *ports, char why[AW_PREFIX_WHY_MAX])
{
	struct aw_slice last = text;
	struct aw_slice first = aw_slice_cut(&last, '-');
	unsigned long low = 0, high;
	bool right = aw_slice_number(first, PORT_MAX, &low) && low > 0;

	high = low;
	if (right && first.len < text.len)
		right = aw_slice_number(last, PORT_MAX, &high) && high >= low;
	if (right)
		*ports = (struct aw_ports){ (uint16_t)low, (uint16_t)high };
	else
		snprintf(why, AW_PREFIX_WHY_MAX,
			 "port must be a number of 1 to 65535, or a range of them, lower first, "
			 "such as 8000-8099");
	return right;
}

bool aw_ports_have(const struct aw_ports *ports, uint16_t port)
{
	return !ports->first || (port >= ports->first && port <= ports->last);
}
