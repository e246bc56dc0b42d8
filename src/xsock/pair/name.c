// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes the names: a prefix, and numbers in hex.
#include "xsock/pair/name.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "xsock/base/ip.h"
#include "xsock/base/libc.h"

#define OFFER "anywarp-offer:"
#define LISTENER "anywarp-listener:"
#define UNMAPPED \
	65534u /* the kernel's id for users that a namespace does not map; Debian's nobody, too */

bool aw_pair_end_of(const struct sockaddr *addr, struct aw_tcp_end *end)
{
	memset(end, 0, sizeof(*end));
	return aw_ip_get(addr, end->ip, &end->port);
}

static bool is_loopback(const uint8_t ip[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	return memcmp(ip, one, sizeof(one)) == 0 || (aw_ip_is_v4(ip) && ip[12] == 127);
}

bool aw_pair_is_local(const struct aw_tcp_end *a, const struct aw_tcp_end *b)
{
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 ||
	       (is_loopback(a->ip) && is_loopback(b->ip));
}

struct aw_tcp_end aw_pair_any(const struct aw_tcp_end *end)
{
	return (struct aw_tcp_end){ .port = end->port };
}

/* Adds the bytes' digits to the name. */
static char *add_hex(char *at, const void *bytes, size_t len)
{
	aw_hex_write(at, bytes, len);
	return at + 2 * len;
}

static char *begin_name(struct sockaddr_un *name, const char *prefix)
{
	size_t len = strlen(prefix);

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	memcpy(name->sun_path + 1, prefix, len);
	return name->sun_path + 1 + len;
}

static socklen_t end_name(const struct sockaddr_un *name, const char *at)
{
	return (socklen_t)(at - (const char *)name);
}

socklen_t aw_pair_offer_name(ino_t ino, struct sockaddr_un *name)
{
	uint64_t number = ino;

	return end_name(name, add_hex(begin_name(name, OFFER), &number, sizeof(number)));
}

/* A wildcard address of IPv4, mapped or not, is that of IPv6: a client tries one name for both. */
socklen_t aw_pair_listener_name(const struct aw_tcp_end *at, struct sockaddr_un *name)
{
	static const uint8_t none[4];
	char *text = begin_name(name, LISTENER);
	uint32_t user = geteuid();
	uint8_t ip[16];

	memcpy(ip, at->ip, sizeof(ip));
	if (aw_ip_is_v4(ip) && memcmp(ip + 12, none, sizeof(none)) == 0)
		memset(ip, 0, sizeof(ip));
	text = add_hex(text, &user, sizeof(user));
	text = add_hex(text, ip, sizeof(ip));
	return end_name(name, add_hex(text, &at->port, sizeof(at->port)));
}

/* Returns whether this process knows all users by their own ids: a user namespace shows those that it does not map as one. */
static bool knows_all_users(void)
{
	unsigned inside, outside, count = 0;
	char line[64] = "";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)!aw_libc()->read(fd, line, sizeof(line) - 1);
	aw_libc()->close(fd);
	return sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && !inside && !outside &&
	       count == UINT32_MAX;
}

bool aw_pair_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       peer.uid == geteuid() && (peer.uid != UNMAPPED || knows_all_users());
}
