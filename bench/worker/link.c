// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// bench-link DEVICE NETNS DELAY_US LOSS_PPM: a long link between the network namespace that it is started in and the one that
// the path NETNS names. Each end is a TUN device of the name DEVICE. A packet comes out DELAY_US after it went in, or, of a
// million, LOSS_PPM never do; a packet that finds the link full is lost as well. Ends when it is killed.
#include "worker/clock.h"
#include "worker/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PACKET_MAX 2048
#define UNDER_WAY_MAX 4096 /* a power of two: some 6 MB each way */
#define PPM 1000000u

struct packet {
	uint64_t due_ns;
	size_t len;
	unsigned char octets[PACKET_MAX];
};

/* One direction. Positions only grow. */
struct way {
	int from, to;
	uint64_t in, out;
	struct packet *packets;
};

static uint64_t delay_ns;
static uint32_t loss_ppm;

static int open_device(const char *name)
{
	struct ifreq wanted = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(wanted.ifr_name, sizeof(wanted.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &wanted) != 0)
		fail_errno("no TUN device %s", name);
	return fd;
}

static void enter_namespace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		fail_errno("cannot enter %s", path);
	close(fd);
}

/* The same packets are lost by each run that sends the same ones. */
static bool is_lost(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % PPM < loss_ppm;
}

static void take_in(struct way *way, uint64_t now)
{
	static unsigned char dropped[PACKET_MAX];

	for (;;) {
		bool full = way->in - way->out == UNDER_WAY_MAX;
		struct packet *packet = &way->packets[way->in % UNDER_WAY_MAX];
		ssize_t len = read(way->from, full ? dropped : packet->octets, PACKET_MAX);

		if (len < 0 && errno == EAGAIN)
			return;
		if (len < 0 && errno != EIO) /* EIO: the device is not up yet */
			fail_errno("a TUN device gives nothing");
		if (len < 0)
			return;
		if (full || is_lost())
			continue;
		packet->len = (size_t)len;
		packet->due_ns = now + delay_ns;
		way->in++;
	}
}

/* A packet that a device does not take is lost, as on any link. */
static void let_out(struct way *way, uint64_t now)
{
	while (way->out != way->in) {
		const struct packet *packet = &way->packets[way->out % UNDER_WAY_MAX];

		if (packet->due_ns > now)
			return;
		if (write(way->to, packet->octets, packet->len) < 0 && errno != EAGAIN &&
		    errno != EIO && errno != ENOBUFS)
			fail_errno("a TUN device takes nothing");
		way->out++;
	}
}

/* The time until something is due, or NULL. */
static const struct timespec *until_due(const struct way *ways, uint64_t now, struct timespec *left)
{
	uint64_t due = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		const struct way *way = &ways[i];

		if (way->out != way->in && way->packets[way->out % UNDER_WAY_MAX].due_ns < due)
			due = way->packets[way->out % UNDER_WAY_MAX].due_ns;
	}
	if (due == UINT64_MAX)
		return NULL;
	due = due > now ? due - now : 0;
	*left = (struct timespec){ .tv_sec = (time_t)(due / NS_PER_SECOND),
				   .tv_nsec = (long)(due % NS_PER_SECOND) };
	return left;
}

static void carry(struct way *ways)
{
	for (;;) {
		struct pollfd fds[2] = { { .fd = ways[0].from, .events = POLLIN },
					 { .fd = ways[1].from, .events = POLLIN } };
		struct timespec left;

		if (ppoll(fds, 2, until_due(ways, clock_ns(), &left), NULL) < 0 && errno != EINTR)
			fail_errno("ppoll");
		for (int i = 0; i < 2; i++) {
			take_in(&ways[i], clock_ns());
			let_out(&ways[i], clock_ns());
		}
	}
}

int main(int argc, char **argv)
{
	struct way ways[2] = { 0 };

	if (argc != 5)
		return EXIT_USAGE;
	delay_ns = strtoull(argv[3], NULL, 10) * 1000;
	loss_ppm = (uint32_t)strtoul(argv[4], NULL, 10);
	ways[0].from = ways[1].to = open_device(argv[1]);
	enter_namespace(argv[2]);
	ways[1].from = ways[0].to = open_device(argv[1]);
	for (int i = 0; i < 2; i++) {
		ways[i].packets = calloc(UNDER_WAY_MAX, sizeof(struct packet));
		if (!ways[i].packets)
			fail("out of memory");
	}
	prctl(PR_SET_TIMERSLACK, 1L);
	puts("ready");
	fflush(stdout);
	carry(ways);
}
