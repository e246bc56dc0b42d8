// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// As bind(2) does, every other port is tried first, beginning at the second: connect(2) prefers the others.
#include "rdmacm/port.h"

#include "base/slice.h"
#include "net/base/io_now.h"
#include "net/base/random.h"
#include "rdmacm/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* For each half of the range, a µs each at the most. Where nine of ten ports are in use, all tries of both halves fail one time in 29. */
#define TRIES 16
#define PORTS 65536
#define TEXT_MAX 4096 /* a longer list of reserved ports is not taken: bind(2) chooses each port */

/* The range, read once: a host hardly changes it. count 0: not known, and bind(2) chooses each port. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t low, count;
static bool reserved[PORTS];

/* False: there is no such file, or it is longer than TEXT_MAX. */
static bool read_text(const char *path, char *text)
{
	int fd = aw_open_now(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? aw_read_now(fd, text, TEXT_MAX) : -1;

	if (fd >= 0)
		aw_close_now(fd);
	if (len < 0 || len == TEXT_MAX)
		return false;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* Reads one number, or two with the separator between them. */
static bool read_pair(struct aw_slice text, char separator, unsigned long *first,
		      unsigned long *end)
{
	struct aw_slice begin = aw_slice_cut(&text, separator);

	if (!aw_slice_number(begin, PORTS - 1, first))
		return false;
	*end = *first;
	return text.len == 0 || (aw_slice_number(text, PORTS - 1, end) && *end >= *first);
}

static void read_range(void)
{
	static char text[TEXT_MAX + 1]; /* too large for a small stack */
	unsigned long first, end;

	if (!read_text("/proc/sys/net/ipv4/ip_local_reserved_ports", text))
		return;
	struct aw_slice rest = aw_slice_of(text);

	while (rest.len > 0) {
		if (!read_pair(aw_slice_cut(&rest, ','), '-', &first, &end))
			return;
		for (unsigned long port = first; port <= end; port++)
			reserved[port] = true;
	}
	if (!read_text("/proc/sys/net/ipv4/ip_local_port_range", text) ||
	    !read_pair(aw_slice_of(text), '\t', &first, &end) || first == end)
		return;
	low = (uint32_t)first;
	count = (uint32_t)(end - first + 1);
}

static int bind_to(int fd, struct sockaddr_storage *addr, uint32_t port)
{
	struct sockaddr *sa = (struct sockaddr *)addr;

	aw_address_set_port(sa, htons((uint16_t)port));
	return bind(fd, sa, aw_address_len(sa->sa_family)) == 0 ? 0 : errno;
}

/* Tries ports of the first half, which begins at the range's second port, or of the other. */
static int bind_in_half(int fd, struct sockaddr_storage *addr, bool first)
{
	uint32_t half = first ? count / 2 : count - count / 2;
	int err = EADDRINUSE;

	for (int i = 0; i < TRIES && err == EADDRINUSE; i++) {
		uint32_t random;

		if (aw_random_take(&random, sizeof(random)) != 0)
			return EIO;
		uint32_t port = low + 2 * (random % half) + first;

		if (!reserved[port])
			err = bind_to(fd, addr, port);
	}
	return err;
}

int aw_cm_port_share(int fd, const struct sockaddr *addr, struct sockaddr_storage *bound)
{
	int err = EADDRINUSE;

	pthread_once(&once, read_range);
	aw_address_copy(bound, addr);
	for (int i = 0; count > 0 && i < TRIES && err == EADDRINUSE; i++) {
		uint32_t random;

		if (aw_random_take(&random, sizeof(random)) != 0)
			return EIO;
		if (!reserved[low + random % count])
			err = bind_to(fd, bound, low + random % count);
	}
	return err;
}

int aw_cm_port_bind(int fd, const struct sockaddr *addr, struct sockaddr_storage *bound)
{
	int err = EIO;

	pthread_once(&once, read_range);
	aw_address_copy(bound, addr);
	if (count > 0)
		err = bind_in_half(fd, bound, true);
	if (err == EADDRINUSE)
		err = bind_in_half(fd, bound, false);
	/* Few ports are free, or a sandbox forbids to choose one. */
	return err ? bind_to(fd, bound, 0) : 0;
}
