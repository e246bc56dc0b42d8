// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of 'anywarp sockets --status' for pairs, connections in mode `auto` between two programs of this host, and for connections that
// are plain TCP. The kernel's tables of a process's network namespace tell of them: the server's end of a pair has a name with both
// addresses (xsock/process/name.h), the client's one with the inode of its TCP socket (xsock/pair/name.h).
#include "cli/sockets.h"

#include "cli/sockets_plain.h"

#include "base/hex.h"
#include "xsock/base/sockdiag.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVER "@awpair:"
#define CLIENT "@anywarp-offer:"
#define IP_BYTES 16
#define END_BYTES (IP_BYTES + 2)
#define TCP_LINE "%*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %*d %*d %" SCNu64
// A line with a name: "Num RefCount Protocol Flags Type St Inode Path". St of a connected socket is 3.
#define UNIX_LINE "%*x: %*x %*x %*x %*x 03 %" SCNu64 " %159s"
#define LISTEN 10 // the kernel's number

struct end_address {
	uint8_t ip[IP_BYTES]; // an IPv4 address is in the first four bytes
	uint16_t port;
};

struct pair_row {
	uint64_t ino;
	uint64_t tcp_ino; // of a client's end, or of plain TCP; 0: the addresses are known
	unsigned state; // the kernel's number
	enum aw_plain why; // it is plain TCP
	bool ipv6;
	struct end_address local, peer;
};

struct pair_rows {
	struct pair_row *list;
	size_t count;
};

// An end as a server's name has it, in network byte order.
static bool read_end(const char *text, bool ipv6, struct end_address *end)
{
	uint8_t bytes[END_BYTES];

	if (!aw_hex_read(text, bytes, sizeof(bytes)))
		return false;
	memset(end, 0, sizeof(*end));
	memcpy(end->ip, ipv6 ? bytes : bytes + 12, ipv6 ? IP_BYTES : 4);
	end->port = (uint16_t)(bytes[IP_BYTES] << 8 | bytes[IP_BYTES + 1]);
	return true;
}

static bool read_name(const char *name, struct pair_row *pair)
{
	const char *text = name + strlen(SERVER);

	if (strncmp(name, CLIENT, strlen(CLIENT)) == 0)
		return aw_hex_read(name + strlen(CLIENT), &pair->tcp_ino, sizeof(pair->tcp_ino));
	if (strncmp(name, SERVER, strlen(SERVER)) != 0)
		return false;
	pair->ipv6 = text[0] == '6';
	return text[0] && read_end(text + 1, pair->ipv6, &pair->local) &&
	       read_end(text + 1 + 2 * END_BYTES, pair->ipv6, &pair->peer);
}

static FILE *open_table(pid_t pid, const char *name)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	return fopen(path, "re");
}

static void add_row(struct pair_rows *pairs, const struct pair_row *pair)
{
	struct pair_row *longer = realloc(pairs->list, (pairs->count + 1) * sizeof(*pair));

	if (!longer)
		return;
	pairs->list = longer;
	pairs->list[pairs->count++] = *pair;
}

static void read_unix(struct pair_rows *pairs, pid_t pid)
{
	FILE *table = open_table(pid, "unix");
	char line[256], name[160];

	while (table && fgets(line, sizeof(line), table)) {
		struct pair_row pair = { 0 };

		if (sscanf(line, UNIX_LINE, &pair.ino, name) == 2 && read_name(name, &pair))
			add_row(pairs, &pair);
	}
	if (table)
		fclose(table);
}

// An address as /proc/net/tcp has it: words in this machine's byte order.
static void read_words(const char *text, unsigned port, struct end_address *end)
{
	memset(end, 0, sizeof(*end));
	for (size_t i = 0; i < IP_BYTES / 4 && strlen(text) >= 8 * (i + 1); i++) {
		char digits[9] = "";
		uint32_t word;

		memcpy(digits, text + 8 * i, 8);
		word = (uint32_t)strtoul(digits, NULL, 16);
		memcpy(end->ip + 4 * i, &word, sizeof(word));
	}
	end->port = (uint16_t)port;
}

// Writes the addresses and states of the sockets of which only the inode is known.
static void read_tcp(struct pair_rows *pairs, pid_t pid, bool ipv6)
{
	FILE *table = open_table(pid, ipv6 ? "tcp6" : "tcp");
	char line[256], local[33], peer[33];
	unsigned local_port, peer_port, state;
	uint64_t ino;

	while (table && fgets(line, sizeof(line), table)) {
		int count =
			sscanf(line, TCP_LINE, local, &local_port, peer, &peer_port, &state, &ino);

		if (count != 6 || !ino)
			continue;
		for (size_t i = 0; i < pairs->count; i++) {
			struct pair_row *pair = &pairs->list[i];

			if (pair->tcp_ino != ino)
				continue;
			pair->tcp_ino = 0;
			pair->state = state;
			pair->ipv6 = ipv6;
			read_words(local, local_port, &pair->local);
			read_words(peer, peer_port, &pair->peer);
		}
	}
	if (table)
		fclose(table);
}

static void list_pair(pid_t pid, int fd, const struct pair_row *pair, struct sheet *table)
{
	struct sheet_row row = aw_sockets_row_begin(pid);

	if (pair->why && (pair->tcp_ino || pair->state == LISTEN))
		return; // it is no connection any more
	aw_sheet_put(&row, SOCKETS_FD, (uint64_t)fd);
	strcpy(row.fields[SOCKETS_KIND], pair->why ? "tcp" : "pair");
	// A connection whose fd is beyond the table may have been in on.
	strcpy(row.fields[SOCKETS_MODE], pair->why == AW_PLAIN_OFF	? "off"
					 : pair->why == AW_PLAIN_BEYOND ? ""
									: "auto");
	strcpy(row.fields[SOCKETS_STATE],
	       pair->why ? aw_sockets_state(pair->state) : "established");
	if (pair->why)
		strcpy(row.fields[SOCKETS_WHY], aw_plain_words[pair->why].word);
	if (!pair->tcp_ino) {
		aw_sheet_put_address(&row, SOCKETS_LOCAL, pair->ipv6, pair->local.ip,
				     pair->local.port);
		aw_sheet_put_address(&row, SOCKETS_PEER, pair->ipv6, pair->peer.ip,
				     pair->peer.port);
	}
	aw_sheet_add(table, &row);
}

static struct pair_row *find_row(const struct pair_rows *pairs, uint64_t ino)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (pairs->list[i].ino == ino)
			return &pairs->list[i];
	return NULL;
}

static void note_plain(struct pair_rows *pairs, DIR *fds, const struct sockets_plain *plain)
{
	struct dirent *entry;
	enum aw_plain why;
	uint64_t ino;

	while ((entry = readdir(fds))) {
		if (!aw_sockdiag_fd(dirfd(fds), entry->d_name, &ino))
			continue;
		why = aw_sockets_plain_find(plain, ino);
		if (why && !find_row(pairs, ino))
			add_row(pairs,
				&(struct pair_row){ .ino = ino, .tcp_ino = ino, .why = why });
	}
	rewinddir(fds);
}

void aw_sockets_pairs(pid_t pid, struct sheet *table, struct sockets_plain *plain)
{
	struct pair_rows pairs = { 0 };
	const struct pair_row *pair;
	struct dirent *entry;
	char path[32];
	uint64_t ino;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	if (!fds)
		return;
	read_unix(&pairs, pid);
	aw_sockets_plain_read(plain, dirfd(fds));
	note_plain(&pairs, fds, plain);
	if (pairs.count) {
		read_tcp(&pairs, pid, false);
		read_tcp(&pairs, pid, true);
	}
	while (pairs.count && (entry = readdir(fds))) {
		if (!aw_sockdiag_fd(dirfd(fds), entry->d_name, &ino))
			continue;
		pair = find_row(&pairs, ino);
		if (pair)
			list_pair(pid, atoi(entry->d_name), pair, table);
	}
	closedir(fds);
	free(pairs.list);
}
