// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes and reads the name: PREFIX, then in hex the family, address, port and scope of both ends,
// and the inode, which makes the name unique.
#include "xsock/process/name.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hex.h"
#include "xsock/base/ip.h"
#include "xsock/base/libc.h"
#include "xsock/base/text.h"

#define PREFIX "anywarp:"
#define PAIR_PREFIX \
	"awpair:" /* the end of a server in mode `auto`: the other end is the client's own */
#define IP_BYTES 16
#define END_HEX (2 * (IP_BYTES + 2))

static void write_end(char *text, const union aw_address *addr)
{
	uint8_t bytes[IP_BYTES + 2] = { 0 };
	uint16_t port = 0;

	(void)aw_ip_get((const struct sockaddr *)addr, bytes, &port);
	memcpy(bytes + IP_BYTES, &port, sizeof(port));
	aw_hex_write(text, bytes, sizeof(bytes));
}

static bool read_end(const char *text, bool ipv6, union aw_address *addr)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	uint8_t bytes[IP_BYTES + 2];

	if (!aw_hex_read(text, bytes, sizeof(bytes)))
		return false;
	memset(addr, 0, sizeof(*addr));
	addr->any.sa_family = ipv6 ? AF_INET6 : AF_INET;
	if (ipv6) {
		memcpy(&v6->sin6_addr, bytes, IP_BYTES);
		memcpy(&v6->sin6_port, bytes + IP_BYTES, 2);
	} else {
		memcpy(&v4->sin_addr, bytes + 12, 4);
		memcpy(&v4->sin_port, bytes + IP_BYTES, 2);
	}
	return true;
}

void aw_name_bind(int near, const struct aw_sock *sock, ino_t ino)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	bool ipv6 = sock->local.any.sa_family == AF_INET6;
	char *text = name.sun_path + 1;

	text = aw_text_add(text, sock->is_pair ? PAIR_PREFIX : PREFIX);
	text = aw_text_add(text, ipv6 ? "6" : "4");
	write_end(text, &sock->local);
	write_end(text + END_HEX, &sock->remote);
	text += 2 * END_HEX;
	text = aw_text_add_digits(
		text, ipv6 ? ((const struct sockaddr_in6 *)&sock->local)->sin6_scope_id : 0, 16, 8);
	text = aw_text_add_digits(text, ino, 16, 8);
	(void)aw_libc()->bind(near, (struct sockaddr *)&name, (socklen_t)(text - (char *)&name));
}

/* Returns what follows the prefix, or NULL: the name has none. */
static const char *skip_prefix(const struct sockaddr_un *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return name->sun_family == AF_UNIX && !name->sun_path[0] &&
			       memcmp(name->sun_path + 1, prefix, len) == 0
		       ? name->sun_path + 1 + len
		       : NULL;
}

static bool read_name(const struct sockaddr_un *name, socklen_t len, struct aw_sock *sock)
{
	const char *text = skip_prefix(name, PAIR_PREFIX);
	bool ipv6;
	unsigned scope;

	sock->is_pair = text;
	if (!text)
		text = skip_prefix(name, PREFIX);
	if (!text || (size_t)len < (size_t)(text - (const char *)name) + 1 + 2 * END_HEX + 8)
		return false;
	ipv6 = *text++ == '6';
	if (!read_end(text, ipv6, &sock->local) || !read_end(text + END_HEX, ipv6, &sock->remote))
		return false;
	if (ipv6 && sscanf(text + 2 * END_HEX, "%8x", &scope) == 1) {
		((struct sockaddr_in6 *)&sock->local)->sin6_scope_id = scope;
		((struct sockaddr_in6 *)&sock->remote)->sin6_scope_id = scope;
	}
	return true;
}

bool aw_name_is_believed(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 && (file.st_uid == geteuid() || file.st_uid == 0);
}

bool aw_name_import(int fd)
{
	struct aw_sock sock = { .state = AW_FD_BRIDGED, .mode = AW_XS_ON };
	struct sockaddr_un name = { 0 };
	union aw_address local;
	socklen_t len = sizeof(name);

	if (aw_fdtab_state(fd) != AW_FD_NONE)
		return false;
	/* The client's end of a pair of mode `auto` has no such name; the server's has, and tells it from the server's side. */
	if (aw_libc()->getsockname(fd, (struct sockaddr *)&name, &len) != 0 ||
	    !read_name(&name, len, &sock)) {
		name = (struct sockaddr_un){ 0 };
		len = sizeof(name);
		if (aw_libc()->getpeername(fd, (struct sockaddr *)&name, &len) != 0 ||
		    !read_name(&name, len, &sock) || !sock.is_pair)
			return false;
		local = sock.remote;
		sock.remote = sock.local;
		sock.local = local;
	}
	return aw_name_is_believed(fd) && aw_fdtab_add(fd, &sock);
}
