// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends the probe, and keeps a table of servers that have answered or not.
#include "xsock/preload/probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/base/probe_wire.h"
#include "xsock/process/env.h"
#include "xsock/process/fdtab.h"

#define ENVIRONMENT_MS_MAX 10000
#define UNSET_MS (-1)
#define PATIENT_MS 1000
#define SERVERS 64
#define SILENT_NS 10000000000
/*
 * A proxy process of this host has answered after 37 to 150 tries of recv(2) (docs/performance.md), and the client is awake then: to
 * sleep and wake would take it 30 µs more. The client does not yield between the tries, because beside two busy processes a
 * thread that yields gets its processor back after milliseconds.
 */
#define NEAR_TRIES 200
/* After tries in vain, as where the proxy process waits for the client's processor, so many probes sleep at once. */
#define NEAR_PAUSE 31
/* After this many misses in a row a server counts as one that has never answered. */
#define MISSES_MAX 2

/* The known servers; a new one takes the place of the oldest. Under the table's lock. */
static struct server {
	uint8_t ip[16];
	uint16_t port;
	bool answers;
	unsigned misses; /* probes without an answer since the last one */
	int64_t silent_until_ns;
} servers[SERVERS];
static unsigned servers_next;

static _Atomic(int) near_pause; /* how many probes to this host are still to sleep at once */

static int environment_ms = UNSET_MS; /* ANYWARP_SOCKETS_PROBE_MS */

/* Returns the server's place in the table, or NULL. The caller holds the table's lock. */
static struct server *find_server(const uint8_t ip[16], uint16_t port)
{
	for (int i = 0; i < SERVERS; i++)
		if (servers[i].port == port && memcmp(servers[i].ip, ip, 16) == 0)
			return &servers[i];
	return NULL;
}

static struct server copy_server(const uint8_t ip[16], uint16_t port)
{
	struct server *found, copy = { .port = port };

	aw_fdtab_lock();
	found = find_server(ip, port);
	if (found)
		copy = *found;
	aw_fdtab_unlock();
	return copy;
}

/*
 * Notes the server's answer. A server that has answered before and now does not is busy, or gone:
 * after MISSES_MAX misses new connections stop waiting for it.
 */
static void note_answer(const uint8_t ip[16], uint16_t port, enum aw_answer answer)
{
	bool has_answered = answer >= AW_ANSWER_NO;
	struct server *server;

	aw_fdtab_lock();
	server = find_server(ip, port);
	if (!server) {
		server = &servers[servers_next++ % SERVERS];
		*server = (struct server){ .port = port };
		memcpy(server->ip, ip, 16);
	}
	server->misses = has_answered ? 0 : server->misses + 1;
	server->answers = has_answered || (server->answers && answer == AW_ANSWER_NONE &&
					   server->misses < MISSES_MAX);
	server->silent_until_ns = has_answered ? 0 : aw_now_ns() + SILENT_NS;
	aw_fdtab_unlock();
}

/*
 * A connection that another library's constructor opens before this one runs waits as if the
 * variable were unset.
 */
__attribute__((constructor)) static void read_environment(void)
{
	environment_ms = aw_env_number("ANYWARP_SOCKETS_PROBE_MS", ENVIRONMENT_MS_MAX, UNSET_MS);
}

int aw_probe_wait_ms(int ms)
{
	return environment_ms == UNSET_MS ? ms : environment_ms;
}

int aw_probe_patience_ms(void)
{
	int wait_ms = aw_probe_wait_ms(PATIENT_MS);

	return wait_ms > PATIENT_MS ? wait_ms : PATIENT_MS;
}

static socklen_t length_of(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

/*
 * Opens a UDP socket from the connection's own address to the server's. Returns -1 on failure. It is
 * open no longer than a probe: its port may be that of a listener to come, whose probes are answered there.
 */
static int open_probe(const struct sockaddr_storage *local, const struct sockaddr_storage *remote)
{
	struct sockaddr_storage from = *local;
	int fd = aw_libc()->socket(remote->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (from.ss_family == AF_INET)
		((struct sockaddr_in *)&from)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&from)->sin6_port = 0;
	if (aw_libc()->bind(fd, (struct sockaddr *)&from, length_of(&from)) != 0 ||
	    aw_libc()->connect(fd, (const struct sockaddr *)remote, length_of(remote)) != 0) {
		aw_libc()->close(fd);
		return -1;
	}
	return fd;
}

static bool is_answer(const uint8_t *answer, const uint8_t *probe)
{
	return memcmp(answer, AW_PROBE_ANSWERS, 8) == 0 &&
	       answer[AW_PROBE_VERSION_AT] == AW_PROBE_VERSION &&
	       memcmp(answer + AW_PROBE_NONCE_AT, probe + AW_PROBE_NONCE_AT, AW_PROBE_NONCE_LEN) ==
		       0;
}

static enum aw_answer meaning_of(uint8_t byte)
{
	if (byte == (AW_PROBE_YES | AW_PROBE_RECORDS))
		return AW_ANSWER_RECORDS;
	return byte == AW_PROBE_YES ? AW_ANSWER_YES : AW_ANSWER_NO;
}

/*
 * Receives a datagram, if one is there. Returns whether it is the answer to the probe, or the server's host has refused the probe; ignores
 * other datagrams.
 */
static bool take_answer(int fd, const uint8_t *probe, enum aw_answer *answer)
{
	uint8_t bytes[AW_PROBE_LEN];
	ssize_t got = aw_libc()->recv(fd, bytes, sizeof(bytes), 0);

	if (got < 0 && errno != EAGAIN && errno != EINTR) {
		*answer = AW_ANSWER_REFUSED;
		return true;
	}
	if (got != AW_PROBE_LEN || !is_answer(bytes, probe))
		return false;
	*answer = meaning_of(bytes[AW_PROBE_YES_AT]);
	return true;
}

/* Tries to take the answer of a proxy process of this host without sleeping. */
static bool take_near_answer(int fd, const uint8_t *probe, enum aw_answer *answer)
{
	int pause = atomic_load_explicit(&near_pause, memory_order_relaxed);

	for (int i = 0; !pause && i < NEAR_TRIES; i++)
		if (take_answer(fd, probe, answer))
			return true;
	atomic_store_explicit(&near_pause, pause ? pause - 1 : NEAR_PAUSE, memory_order_relaxed);
	return false;
}

/* Waits for the answer for wait_ms. near: the server is on this host. */
static enum aw_answer await_answer(int fd, const uint8_t *probe, int wait_ms, bool near)
{
	int64_t end = aw_now_ns() + wait_ms * INT64_C(1000000);
	enum aw_answer answer;

	if (near && wait_ms > 0 && take_near_answer(fd, probe, &answer))
		return answer;
	for (;;) {
		struct pollfd pollfd = { .fd = fd, .events = POLLIN };
		int64_t left = end - aw_now_ns();

		if (left <= 0)
			return AW_ANSWER_NONE;
		if (aw_libc()->poll(&pollfd, 1, (int)((left + 999999) / 1000000)) > 0 &&
		    take_answer(fd, probe, &answer))
			return answer;
	}
}

/* Returns how long known's answer may take. */
static int answer_wait_ms(const struct server *known, int tcp, int wait_ms)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (known->answers)
		return aw_probe_patience_ms();
	(void)aw_libc()->getsockopt(tcp, IPPROTO_TCP, TCP_INFO, &info, &len);
	return aw_probe_wait_ms(wait_ms + (int)(info.tcpi_rtt / 500));
}

enum aw_answer aw_probe_server(int tcp, const struct sockaddr_storage *local,
			       const struct sockaddr_storage *remote, bool records, int wait_ms)
{
	uint8_t probe[AW_PROBE_LEN] = AW_PROBE_ASKS, server[16];
	uint16_t port, client_port;
	enum aw_answer answer = AW_ANSWER_NONE;
	struct server known;
	bool near;
	int fd;

	if (!aw_probe_addr((const struct sockaddr *)remote, server, &port) ||
	    !aw_probe_addr((const struct sockaddr *)local, probe + AW_PROBE_ADDR_AT, &client_port))
		return AW_ANSWER_NONE;
	known = copy_server(server, port);
	if (known.silent_until_ns > aw_now_ns())
		return AW_ANSWER_NONE;
	probe[AW_PROBE_VERSION_AT] = AW_PROBE_VERSION;
	probe[AW_PROBE_YES_AT] = records ? AW_PROBE_RECORDS : 0;
	memcpy(probe + AW_PROBE_PORT_AT, &client_port, sizeof(client_port));
	if (getrandom(probe + AW_PROBE_NONCE_AT, AW_PROBE_NONCE_LEN, 0) != AW_PROBE_NONCE_LEN)
		return AW_ANSWER_NONE;
	fd = open_probe(local, remote);
	if (fd < 0)
		return AW_ANSWER_NONE;
	near = memcmp(server, probe + AW_PROBE_ADDR_AT, sizeof(server)) == 0;
	if (aw_libc()->send(fd, probe, sizeof(probe), MSG_NOSIGNAL) > 0)
		answer = await_answer(fd, probe, answer_wait_ms(&known, tcp, wait_ms), near);
	aw_libc()->close(fd);
	if (answer < AW_ANSWER_NO || !known.answers || known.misses)
		note_answer(server, port, answer);
	return answer;
}
