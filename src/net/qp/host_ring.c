// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes, opens and maps the memory. The file is a page of control, then the bytes of each
// direction. Each direction is mapped twice in a row, so that every FPDU is contiguous.
#include "net/qp/host_ring.h"

#include "net/base/io_now.h"
#include "net/mem/memfd.h"
#include "ring/lock.h"
#include "wire/octets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYOUT 4u /* a file with another layout is of another version and is not used */
#define NAME "anywarp-host"
#define LINK "/memfd:" NAME " (deleted)"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

enum {
	HELLO_PID = 0,
	HELLO_FD = 4,
	HELLO_PORTS = 8,
	HELLO_SECRET = 12,
};

/* The first page. Responder and initiator have the sides 0 and 1. */
struct control {
	uint32_t layout;
	uint32_t bytes; /* bytes of one direction's ring */
	uint8_t hello_secret[AW_HOST_SECRET_LEN];
	uint8_t verdict_secret[AW_HOST_SECRET_LEN];
	/* The pipes, of the responder's process. Each end sets its own of told as it listens to its pipe. */
	struct aw_bells_name bells[2];
	_Atomic uint32_t bells_told[2];
	struct aw_duplex_side sides[2];
};

static _Atomic uint32_t rings; /* of this process */

/* Held while memory is made, mapped or unmapped. A thread takes it last. */
static aw_mutex mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, aw_host_ring) mapped AW_GUARDED_BY(mapped_lock) = LIST_HEAD_INITIALIZER(mapped);

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t file_size(void)
{
	return page_size() + 2 * (size_t)AW_HOST_RING_BYTES;
}

static bool is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
	return addr->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

bool aw_host_is_one(const struct sockaddr *local, const struct sockaddr *peer)
{
	const struct sockaddr_in *local4 = (const void *)local, *peer4 = (const void *)peer;
	const struct sockaddr_in6 *local6 = (const void *)local, *peer6 = (const void *)peer;

	if (is_loopback(peer))
		return true;
	if (local->sa_family != peer->sa_family)
		return false;
	if (peer->sa_family == AF_INET)
		return peer4->sin_addr.s_addr != INADDR_ANY &&
		       local4->sin_addr.s_addr == peer4->sin_addr.s_addr;
	return peer->sa_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&peer6->sin6_addr) &&
	       IN6_ARE_ADDR_EQUAL(&local6->sin6_addr, &peer6->sin6_addr);
}

/* The port lies in the same place for both families. */
static uint16_t port_of(const struct sockaddr *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

void aw_host_put_ports(uint8_t *hello, const struct sockaddr *local, const struct sockaddr *peer)
{
	put_be16(hello + HELLO_PORTS, port_of(local));
	put_be16(hello + HELLO_PORTS + 2, port_of(peer));
}

bool aw_host_are_ports(const uint8_t *hello, const struct sockaddr *local,
		       const struct sockaddr *peer)
{
	return get_be16(hello + HELLO_PORTS) == port_of(peer) &&
	       get_be16(hello + HELLO_PORTS + 2) == port_of(local);
}

static bool map_part(uint8_t *at, size_t len, int fd, size_t offset)
{
	return mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) !=
	       MAP_FAILED;
}

/*
 * Maps control page, first ring, first, second, second: the first mapping, of which the front stays, takes the addresses
 * for all.
 */
static void *map_parts(int fd, size_t len)
{
	size_t page = page_size(), bytes = AW_HOST_RING_BYTES;
	uint8_t *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (map_part(base + page + bytes, 2 * bytes, fd, page) &&
	    map_part(base + page + 3 * bytes, bytes, fd, page + bytes))
		return base;
	munmap(base, len);
	return NULL;
}

static struct aw_host_ring *ring_new(void)
{
	struct aw_host_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->bells = (struct aw_bells){ -1, -1 };
	ring->len = page_size() + 4 * (size_t)AW_HOST_RING_BYTES;
	return ring;
}

/* offers: fd stays open until the initiator's verdict. Else the caller closes it, under the same lock, so that no child gets it. */
static bool map(struct aw_host_ring *ring, int fd, bool offers) AW_REQUIRES(mapped_lock)
{
	ring->base = map_parts(fd, ring->len);
	if (!ring->base)
		return false;
	ring->memfd = offers ? aw_memfd_keep(fd) : 0;
	LIST_INSERT_HEAD(&mapped, ring, entry);
	return true;
}

static void unmap(struct aw_host_ring *ring)
{
	aw_lock(&mapped_lock);
	LIST_REMOVE(ring, entry);
	munmap(ring->base, ring->len);
	aw_unlock(&mapped_lock);
}

/* In a time that does not tell where they differ. */
static bool are_equal(const uint8_t *one, const uint8_t *other)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < AW_HOST_SECRET_LEN; i++)
		differ |= one[i] ^ other[i];
	return differ == 0;
}

static void begin(struct aw_host_ring *ring, unsigned int side)
{
	struct control *control = ring->base;
	uint8_t *first = (uint8_t *)ring->base + page_size();
	uint8_t *bytes[2] = { first, first + 2 * (size_t)AW_HOST_RING_BYTES };

	aw_duplex_init(&ring->duplex, control->sides, bytes, side, AW_HOST_RING_BYTES);
}

static bool take_place(const char **cause)
{
	if (atomic_fetch_add(&rings, 1) < AW_HOST_RINGS_MAX)
		return true;
	atomic_fetch_sub(&rings, 1);
	*cause = "too many connections share memory";
	return false;
}

struct aw_host_ring *aw_host_ring_make(uint8_t *hello, const char **cause)
{
	uint8_t secrets[2][AW_HOST_SECRET_LEN];
	struct aw_host_ring *ring;
	struct control *control;
	bool is_mapped;
	int fd;

	if (!take_place(cause))
		return NULL;
	*cause = "no sealed memory to be had";
	ring = ring_new();
	aw_lock(&mapped_lock);
	fd = ring ? aw_memfd_make(NAME, file_size()) : -1;
	is_mapped = fd >= 0 && getentropy(secrets, sizeof(secrets)) == 0 && map(ring, fd, true);
	if (!is_mapped && fd >= 0)
		aw_close_now(fd);
	aw_unlock(&mapped_lock);
	if (!is_mapped) {
		free(ring);
		atomic_fetch_sub(&rings, 1);
		return NULL;
	}
	control = ring->base;
	control->layout = LAYOUT;
	control->bytes = AW_HOST_RING_BYTES;
	memcpy(control->hello_secret, secrets[0], AW_HOST_SECRET_LEN);
	memcpy(control->verdict_secret, secrets[1], AW_HOST_SECRET_LEN);
	memcpy(ring->secret, secrets[1], AW_HOST_SECRET_LEN);
	begin(ring, 0);
	put_be32(hello + HELLO_PID, (uint32_t)getpid());
	put_be32(hello + HELLO_FD, (uint32_t)fd);
	memcpy(hello + HELLO_SECRET, control->hello_secret, AW_HOST_SECRET_LEN);
	return ring;
}

/*
 * Opens the memfd of another process. A file of another kind is never opened: its name and then its
 * attributes are checked first, on an O_PATH fd, whose file cannot be exchanged any more. O_NONBLOCK: where the other process has a
 * lease on the memfd (fcntl(2), F_SETLEASE), the open fails and does not wait for the lease's end.
 */
static int open_file(uint32_t pid, uint32_t number, const char **cause)
{
	char path[64], link[sizeof(LINK)];
	struct stat st;
	int place, fd, seals;

	*cause = "the peer's process cannot be looked into";
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, number);
	if (readlink(path, link, sizeof(link)) != (ssize_t)strlen(LINK) ||
	    memcmp(link, LINK, strlen(LINK)) != 0)
		return -1;
	place = aw_open_now(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	*cause = "the peer's memory is another user's, or not sealed";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = aw_memfd_is_one(place) && fstat(place, &st) == 0 && S_ISREG(st.st_mode) &&
			     st.st_uid == geteuid() && st.st_size == (off_t)file_size()
		     ? aw_open_now(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
		     : -1;
	aw_close_now(place);
	seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
	if (fd >= 0 && (seals < 0 || (seals & SEALS) != SEALS)) {
		aw_close_now(fd);
		fd = -1;
	}
	return fd;
}

/*
 * True when the peer that wrote the hello also made the memory. The rest of the control page is
 * checked as it is used.
 */
static bool is_peers(struct aw_host_ring *ring, const uint8_t *hello, uint8_t *verdict)
{
	struct control control, *shared = ring->base;

	memcpy(&control, shared, offsetof(struct control, sides));
	if (control.layout != LAYOUT || control.bytes != AW_HOST_RING_BYTES ||
	    !are_equal(control.hello_secret, hello + HELLO_SECRET))
		return false;
	memcpy(verdict, control.verdict_secret, AW_HOST_SECRET_LEN);
	ring->peer_pid = get_be32(hello + HELLO_PID);
	return true;
}

struct aw_host_ring *aw_host_ring_open(const uint8_t *hello, uint8_t *verdict, const char **cause)
{
	struct aw_host_ring *ring;
	bool is_mapped = false;

	memset(verdict, 0, AW_HOST_VERDICT_LEN);
	if (!take_place(cause))
		return NULL;
	ring = ring_new();
	aw_lock(&mapped_lock);
	int fd = open_file(get_be32(hello + HELLO_PID), get_be32(hello + HELLO_FD), cause);

	if (fd >= 0) {
		*cause = "no room to map the peer's memory";
		is_mapped = ring && map(ring, fd, false);
		aw_close_now(fd);
	}
	aw_unlock(&mapped_lock);
	if (is_mapped && is_peers(ring, hello, verdict)) {
		begin(ring, 1);
		return ring;
	}
	if (is_mapped) {
		*cause = "the peer's memory is not the one it means";
		unmap(ring);
	}
	free(ring);
	atomic_fetch_sub(&rings, 1);
	return NULL;
}

void aw_host_ring_free(struct aw_host_ring *ring)
{
	if (!ring)
		return;
	aw_memfd_close(ring->memfd);
	aw_bells_close(&ring->bells);
	unmap(ring);
	free(ring);
	atomic_fetch_sub(&rings, 1);
}

void aw_host_ring_fork_prepare(void) AW_ACQUIRE(mapped_lock)
{
	aw_lock(&mapped_lock);
}

void aw_host_ring_fork_parent(void) AW_RELEASE(mapped_lock)
{
	aw_unlock(&mapped_lock);
}

void aw_host_ring_fork_child(void) AW_RELEASE(mapped_lock)
{
	struct aw_host_ring *ring;

	LIST_FOREACH(ring, &mapped, entry)
	{
		(void)mmap(ring->base, ring->len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		aw_memfd_close(ring->memfd);
	}
	aw_unlock(&mapped_lock);
}

static unsigned int side_of(const struct aw_host_ring *ring)
{
	return ring->peer_pid ? 1 : 0;
}

static bool is_told(const struct aw_host_ring *ring, unsigned int side)
{
	struct control *control = ring->base;

	return atomic_load_explicit(&control->bells_told[side], memory_order_acquire) != 0;
}

bool aw_host_ring_count_bell(struct aw_host_ring *ring)
{
	struct control *control = ring->base;
	struct aw_bells_name names[2];

	if (ring->bells.own >= 0)
		return false;
	if (ring->peer_pid) {
		if (ring->bells_by_tcp > 0 || !is_told(ring, 0))
			return false;
		ring->bells_by_tcp = 1;
		/* The peer may change the names meanwhile: they are copied before they are judged. It tries once. */
		memcpy(names, control->bells, sizeof(names));
		return aw_bells_open(&ring->bells, ring->peer_pid, names);
	}
	if (++ring->bells_by_tcp != AW_HOST_BELLS_BY_TCP)
		return false;
	aw_bells_make(&ring->bells, names);
	if (ring->bells.own < 0)
		return false;
	memcpy(control->bells, names, sizeof(names));
	return true;
}

void aw_host_ring_tell_bells(struct aw_host_ring *ring)
{
	struct control *control = ring->base;

	if (ring->bells.own < 0 || ring->bells_told)
		return;
	ring->bells_told = true;
	/* Pairs with is_told: with it go the names. */
	atomic_store_explicit(&control->bells_told[side_of(ring)], 1, memory_order_release);
}

bool aw_host_ring_ring(struct aw_host_ring *ring)
{
	if (ring->bells.peers < 0)
		return false;
	ring->bells_heard_of = ring->bells_heard_of || is_told(ring, 1 - side_of(ring));
	if (ring->bells_heard_of)
		aw_bells_ring(&ring->bells);
	return ring->bells_heard_of;
}

enum aw_host_verdict aw_host_ring_decide(struct aw_host_ring *ring, const uint8_t *verdict)
{
	static const uint8_t zeros[AW_HOST_VERDICT_LEN];

	aw_memfd_close(ring->memfd);
	if (are_equal(verdict, ring->secret))
		return AW_HOST_RING;
	return are_equal(verdict, zeros) ? AW_HOST_TCP : AW_HOST_LIE;
}
