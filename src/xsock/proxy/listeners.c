// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One UDP socket for each address that the program listens at. The socket shares its port with no
// other, so that it receives no datagram of the program's.
#include "xsock/proxy/listeners.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "xsock/base/probe_wire.h"
#include "xsock/base/sockdiag.h"
#include "xsock/proxy/control.h"
#include "xsock/proxy/loop.h"
#include "xsock/proxy/procnet.h"

#define INODES_MAX 64 /* listeners of one address: one for each worker with SO_REUSEPORT */
#define ANSWERS_MAX 4096
#define YES_NS INT64_C(1000000000) /* the MPA Request follows at once */
#define NO_NS INT64_C(60000000000)
#define PROBES_A_TURN 16 /* then the loop serves connections */
#define GONE_NS INT64_C(1000000000)

struct listener {
	struct listener *next;
	struct aw_loop_source source; /* fd -1: the UDP port is not bound */
	struct sockaddr_storage local;
	bool v6only, released, may_bind, records;
	bool is_shared; /* sockets of other programs may listen at the same port */
	uint64_t inodes[INODES_MAX];
	int count;
	int64_t seen_ns; /* when the listener was last known to listen */
	bool looked, is_programs; /* looked: in this turn; is_programs: what the look found */
};

enum client_answer {
	ANSWER_NO,
	ANSWER_YES,
	ANSWER_OPEN, /* the program has accepted the connection; its client has sent no probe */
};

/* A client's connection, by the client's address and both ports. */
struct client {
	uint8_t ip[16];
	uint16_t port, local_port;
};

/* The answer that a client received. */
struct answered {
	struct client client;
	enum client_answer answer;
	int64_t until_ns;
};

static struct listener *listeners;
/* by hash; a new answer replaces the one in its place */
static struct answered answers[ANSWERS_MAX];

static struct answered *slot_of(const struct client *client)
{
	uint32_t hash = 2166136261u;

	for (int i = 0; i < 16; i++)
		hash = (hash ^ client->ip[i]) * 16777619u;
	hash = (hash ^ client->port) * 16777619u;
	hash = (hash ^ client->local_port) * 16777619u;
	return &answers[(hash ^ hash >> 16) % ANSWERS_MAX];
}

/* Returns the valid answer for the client, or NULL. */
static struct answered *find_answer(const struct client *client)
{
	struct answered *slot = slot_of(client);
	bool found = slot->until_ns > aw_now_ns() && slot->client.port == client->port &&
		     slot->client.local_port == client->local_port &&
		     memcmp(slot->client.ip, client->ip, sizeof(client->ip)) == 0;

	return found ? slot : NULL;
}

static void put_answer(const struct client *client, enum client_answer answer)
{
	*slot_of(client) = (struct answered){
		.client = *client,
		.answer = answer,
		.until_ns = aw_now_ns() + (answer == ANSWER_YES ? YES_NS : NO_NS),
	};
}

/*
 * Gives the client the answer `wanted`, unless it has received one. Returns whether the answer is
 * yes.
 */
static bool settle_answer(const struct client *client, enum client_answer wanted)
{
	const struct answered *before = find_answer(client);

	if (!before || before->answer == ANSWER_OPEN)
		put_answer(client, wanted);
	return slot_of(client)->answer == ANSWER_YES;
}

static bool name_client(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
			struct client *client)
{
	uint8_t local_ip[16];

	return aw_probe_addr((const struct sockaddr *)local, local_ip, &client->local_port) &&
	       aw_probe_addr((const struct sockaddr *)remote, client->ip, &client->port);
}

bool aw_listeners_decide(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote)
{
	struct client client;

	return name_client(local, remote, &client) && settle_answer(&client, ANSWER_NO);
}

void aw_listeners_accepted(const struct sockaddr_storage *local,
			   const struct sockaddr_storage *remote)
{
	struct client client;

	if (name_client(local, remote, &client) && !find_answer(&client))
		put_answer(&client, ANSWER_OPEN);
}

void aw_listeners_forget(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote)
{
	struct answered *before;
	struct client client;

	before = name_client(local, remote, &client) ? find_answer(&client) : NULL;
	if (before)
		before->until_ns = 0;
}

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	uint8_t ip[16];
	uint16_t port = 0;

	(void)aw_probe_addr((const struct sockaddr *)addr, ip, &port);
	return port;
}

static bool has_inode(const uint64_t *inodes, int count, uint64_t ino)
{
	for (int i = 0; i < count; i++) {
		if (inodes[i] == ino)
			return true;
	}
	return false;
}

static bool is_known(uint64_t ino)
{
	for (const struct listener *listener = listeners; listener; listener = listener->next) {
		if (has_inode(listener->inodes, listener->count, ino))
			return true;
	}
	return false;
}

/*
 * Reads the inodes of the TCP sockets that listen at the address, from /proc where the kernel has
 * no sock_diag.
 */
static int read_inodes(const struct listener *listener, uint64_t *inodes)
{
	bool ipv6 = listener->local.ss_family == AF_INET6;
	uint16_t port = port_of(&listener->local);
	int count = aw_sockdiag_listeners(port, ipv6, inodes, INODES_MAX);

	return count >= 0 ? count : aw_procnet_listeners(port, ipv6, inodes, INODES_MAX);
}

/*
 * Drops the inodes that do not listen any more. Returns whether one is left; *strangers: whether
 * sockets of other programs listen there, too. If neither source can be read, or more sockets
 * listen than fit, the inodes stay as the program has sent them.
 */
static bool refresh_inodes(struct listener *listener, bool *strangers)
{
	uint64_t found[INODES_MAX];
	int kept = 0, count = read_inodes(listener, found);

	*strangers = false;
	if (count >= 0 && count < INODES_MAX) {
		for (int i = 0; i < count; i++)
			*strangers |= !is_known(found[i]);
		for (int i = 0; i < listener->count; i++) {
			if (has_inode(found, count, listener->inodes[i]))
				listener->inodes[kept++] = listener->inodes[i];
		}
		listener->count = kept;
	}
	if (listener->count)
		listener->seen_ns = aw_now_ns();
	return listener->count > 0;
}

/*
 * Returns whether the program listens, and no other one: as long as a socket without SO_REUSEPORT listens, the kernel lets
 * no other one listen at its port.
 */
static bool is_alone(struct listener *listener)
{
	uint64_t ino;

	if (listener->is_shared || !aw_sockdiag_listener(&listener->local, &ino) ||
	    !has_inode(listener->inodes, listener->count, ino))
		return false;
	listener->seen_ns = aw_now_ns();
	return true;
}

/*
 * Returns whether the listener listens, or did so a moment ago: clients that it accepted may still
 * send probes.
 */
static bool has_listened(struct listener *listener)
{
	bool strangers;

	return refresh_inodes(listener, &strangers) || aw_now_ns() - listener->seen_ns < GONE_NS;
}

/*
 * Returns whether the program has, or will have, the client's connection. While the program
 * listens, another program that shares the TCP port (SO_REUSEPORT) may accept it; later the port
 * may be another program's.
 */
static bool is_programs(struct listener *listener, const struct client *client)
{
	const struct answered *before = find_answer(client);
	bool strangers;

	if (before)
		return before->answer != ANSWER_NO;
	if (!listener->looked) {
		listener->looked = true;
		listener->is_programs = is_alone(listener);
		if (listener->is_programs)
			return true;
		listener->is_programs = refresh_inodes(listener, &strangers) && !strangers;
		/* A program that closes its listener sends ACCEPTED for its connections first. */
		aw_control_catch_up();
		before = find_answer(client);
		if (before)
			return before->answer != ANSWER_NO;
	}
	return listener->is_programs;
}

static void close_udp(struct listener *listener)
{
	int fd = listener->source.fd;

	aw_loop_set(&listener->source, -1, 0);
	if (fd >= 0)
		close(fd);
}

/* Sends the reply from the address that the probe was sent to. */
static void send_reply(int fd, struct msghdr *probe, const uint8_t *bytes)
{
	struct iovec iov = { (void *)bytes, AW_PROBE_LEN };
	struct msghdr msg = *probe;

	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_flags = 0;
	(void)sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Returns whether the client's connection may be iWARP. A client behind an address translator sends
 * another address than this process sees: no.
 */
static bool may_be_iwarp(struct listener *listener, const struct sockaddr_storage *from,
			 const uint8_t *bytes)
{
	struct client client;

	if (!name_client(&listener->local, from, &client) ||
	    memcmp(client.ip, bytes + AW_PROBE_ADDR_AT, sizeof(client.ip)) != 0)
		return false;
	/* The source port of the probe is a UDP port; the TCP port is in the probe. */
	memcpy(&client.port, bytes + AW_PROBE_PORT_AT, sizeof(client.port));
	return is_programs(listener, &client) && settle_answer(&client, ANSWER_YES);
}

static void answer_probe(struct listener *listener, int fd, struct msghdr *msg, uint8_t *bytes)
{
	if (memcmp(bytes, AW_PROBE_ASKS, 8) != 0 || bytes[AW_PROBE_VERSION_AT] != AW_PROBE_VERSION)
		return;
	bytes[AW_PROBE_YES_AT] &= listener->records ? AW_PROBE_RECORDS : 0;
	if (may_be_iwarp(listener, msg->msg_name, bytes))
		bytes[AW_PROBE_YES_AT] |= AW_PROBE_YES;
	else
		bytes[AW_PROBE_YES_AT] = 0;
	memcpy(bytes, AW_PROBE_ANSWERS, 8);
	if (listener->source.fd == fd) /* the requests may have released the UDP port */
		send_reply(fd, msg, bytes);
}

/* Answers the next datagram, if it is a probe. False: there is none. */
static bool take_probe(struct listener *listener, int fd)
{
	uint8_t bytes[AW_PROBE_LEN + 1];
	struct sockaddr_storage from;
	char room[128]; /* for the address that the datagram was sent to */
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr msg = { .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (got == AW_PROBE_LEN)
		answer_probe(listener, fd, &msg, bytes);
	return got >= 0;
}

/*
 * Answers probes. A client that sends without end must not keep the loop from its connections: so
 * many probes are answered in a turn, with one look at the kernel's table.
 */
static void udp_ready(struct aw_loop_source *source, uint32_t events)
{
	struct listener *listener = source->owner;
	int fd = source->fd;

	(void)events;
	listener->looked = false;
	for (int i = 0; i < PROBES_A_TURN && source->fd == fd && take_probe(listener, fd); i++)
		;
}

/* Returns the first port that a process without CAP_NET_BIND_SERVICE may bind. */
static int first_free_port(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	int port;

	if (!file || fscanf(file, "%d", &port) != 1)
		port = IPPORT_RESERVED;
	if (file)
		fclose(file);
	return port;
}

static void bind_udp(struct listener *listener)
{
	bool ipv6 = listener->local.ss_family == AF_INET6;
	int fd = socket(listener->local.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, only = listener->v6only;

	if (fd < 0)
		return;
	if (ipv6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	}
	if (!ipv6 || !only)
		setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&listener->local,
		 ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) != 0 ||
	    aw_loop_set(&listener->source, fd, EPOLLIN) != 0) {
		aw_log(AW_LOG_INFO, "no UDP port to answer clients in auto at: %s",
		       strerror(errno));
		close(fd);
	}
}

static bool is_wanted(const struct listener *listener)
{
	return listener->source.fd < 0 && !listener->released && listener->may_bind;
}

static struct listener *find_listener(const struct sockaddr_storage *local)
{
	struct listener *listener = listeners;

	while (listener && memcmp(&listener->local, local, sizeof(*local)) != 0)
		listener = listener->next;
	return listener;
}

void aw_listeners_add(uint64_t ino, const struct sockaddr_storage *local, bool v6only,
		      const struct aw_listener_can *can)
{
	struct listener *listener = find_listener(local);

	if (!listener) {
		listener = calloc(1, sizeof(*listener));
		if (!listener)
			return;
		listener->source =
			(struct aw_loop_source){ .fd = -1, .ready = udp_ready, .owner = listener };
		listener->local = *local;
		listener->v6only = v6only;
		listener->next = listeners;
		listeners = listener;
	}
	if (listener->count == INODES_MAX)
		(void)has_listened(listener);
	if (listener->count < INODES_MAX && !has_inode(listener->inodes, listener->count, ino))
		listener->inodes[listener->count++] = ino;
	listener->seen_ns = aw_now_ns();
	listener->records = can->records;
	listener->is_shared |= can->share;
	listener->may_bind |= can->bind || ntohs(port_of(local)) >= first_free_port();
	if (is_wanted(listener))
		bind_udp(listener);
}

void aw_listeners_release(const struct sockaddr_storage *local)
{
	for (struct listener *listener = listeners; listener; listener = listener->next) {
		if (port_of(&listener->local) != port_of(local))
			continue;
		listener->released = true;
		close_udp(listener);
	}
}

bool aw_listeners_review(void)
{
	struct listener **at = &listeners;

	while (*at) {
		struct listener *listener = *at;

		if (!has_listened(listener)) {
			*at = listener->next;
			close_udp(listener);
			aw_loop_free_later(&listener->source);
			continue;
		}
		if (is_wanted(listener))
			bind_udp(listener);
		at = &listener->next;
	}
	return listeners != NULL;
}
