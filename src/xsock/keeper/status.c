// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The status sockets. Which fds of a process are connections is what /proc says at that moment.
#include "xsock/keeper/status.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "xsock/keeper/carriers.h"
#include "xsock/keeper/conns.h"
#include "xsock/keeper/wills.h"
#include "xsock/preload/say.h"

#define LINE_OCTETS 256

struct process {
	struct process *next;
	struct aw_source source;
	pid_t pid;
	struct sockaddr_un name;
};

static struct process *processes;
static struct aw_loop *loop;
static void (*catch_up)(void);

static const char *state_name(enum aw_xs_state state)
{
	switch (state) {
	case AW_XS_IDLE:
		return "idle";
	case AW_XS_CONNECTING:
		return "connecting";
	case AW_XS_ESTABLISHED:
		return "established";
	case AW_XS_CLOSED:
		return "closed";
	case AW_XS_FAILED:
		return "failed";
	}
	return "unknown";
}

static void print_peer(const struct sockaddr_storage *peer, char text[INET6_ADDRSTRLEN + 16])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	char ip[INET6_ADDRSTRLEN] = "-";

	if (peer->ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof(ip));
		sprintf(text, "%s:%u", ip, ntohs(v4->sin_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof(ip));
		sprintf(text, "[%s]:%u", ip, ntohs(v6->sin6_port));
	}
}

static void tell(int to, int fd, uint8_t mode, const struct sockaddr_storage *remote,
		 const struct aw_xs_stats *stats)
{
	char peer[INET6_ADDRSTRLEN + 16], line[LINE_OCTETS];
	int len;

	print_peer(remote, peer);
	len = snprintf(line, sizeof(line), "%d %s %s %llu %llu %u %u %s\n", fd,
		       mode == 2 ? "auto" : "on", peer, (unsigned long long)stats->octets_in,
		       (unsigned long long)stats->octets_out, stats->send_credits,
		       stats->receive_credits, state_name(stats->state));
	(void)send(to, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What the program has for fd may be one of our connections, or a direct one. */
static void tell_of(int to, int fd, uint64_t ino)
{
	const struct aw_conn *conn = aw_conns_find(ino);
	struct sockaddr_storage remote;
	struct aw_xs_stats stats;
	uint8_t mode;

	if (conn) {
		aw_xs_ep_stats(aw_bridge_ep(conn->bridge), &stats);
		tell(to, fd, conn->mode, &conn->remote, &stats);
	} else if (aw_wills_find(ino, &mode, &remote, &stats)) {
		tell(to, fd, mode, &remote, &stats);
	}
}

/* A process that has changed users may show its fds to root alone: as they were at first, then. */
static void tell_from_memory(int to, pid_t pid)
{
	for (const struct aw_conn *conn = aw_conns_first(); conn; conn = conn->next)
		if (conn->pid == pid)
			tell_of(to, conn->fd, conn->ino);
	aw_wills_each(pid, tell_of, to);
}

void aw_status_tell(int to, pid_t pid)
{
	char path[64], target[64];
	struct dirent *entry;
	DIR *dir;

	sprintf(path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		tell_from_memory(to, pid);
	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		unsigned long ino;

		if (len <= 0)
			continue;
		target[len] = '\0';
		if (sscanf(target, "socket:[%lu]", &ino) == 1)
			tell_of(to, atoi(entry->d_name), ino);
	}
	if (dir)
		closedir(dir);
}

static void ready(struct aw_source *source, uint32_t events)
{
	struct process *process = source->owner;
	const struct aw_order order = { .magic = AW_ORDER_MAGIC,
					.kind = AW_ORDER_STATUS,
					.pid = process->pid };
	int to = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	if (to < 0)
		return;
	catch_up();
	aw_status_tell(to, process->pid);
	aw_carriers_tell(&order, to);
	close(to);
}

static void bury(struct aw_source *source)
{
	free(source->owner);
}

/* Only a directory of our own, that nobody else can write to, will do. */
static bool make_directory(char *path, size_t size)
{
	struct stat dir;

	snprintf(path, size, "/tmp/anywarp-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	return lstat(path, &dir) == 0 && S_ISDIR(dir.st_mode) && dir.st_uid == geteuid() &&
	       !(dir.st_mode & 022);
}

static int listen_at(struct process *process)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	unlink(process->name.sun_path);
	if (bind(fd, (struct sockaddr *)&process->name, sizeof(process->name)) == 0 &&
	    listen(fd, 8) == 0)
		return fd;
	close(fd);
	return -1;
}

void aw_status_init(struct aw_loop *l, void (*take_orders)(void))
{
	loop = l;
	catch_up = take_orders;
}

void aw_status_serve(pid_t pid)
{
	struct process *process = processes;
	char path[64];
	int fd;

	while (process && process->pid != pid)
		process = process->next;
	if (process || !make_directory(path, sizeof(path)))
		return;
	process = calloc(1, sizeof(*process));
	if (!process)
		return;
	process->pid = pid;
	process->source =
		(struct aw_source){ .fd = -1, .ready = ready, .bury = bury, .owner = process };
	process->name.sun_family = AF_UNIX;
	snprintf(process->name.sun_path, sizeof(process->name.sun_path), "%s/sockets.%d", path,
		 (int)pid);
	fd = listen_at(process);
	if (fd < 0 || aw_loop_set(loop, &process->source, fd, EPOLLIN) != 0) {
		aw_say(AW_SAY_WARN, "no status at %s: %s", process->name.sun_path, strerror(errno));
		if (fd >= 0)
			close(fd);
		free(process);
		return;
	}
	process->next = processes;
	processes = process;
}

void aw_status_review(bool all)
{
	struct process **at = &processes;

	while (*at) {
		struct process *process = *at;
		int fd = process->source.fd;

		if (!all && (kill(process->pid, 0) == 0 || errno != ESRCH)) {
			at = &process->next;
			continue;
		}
		*at = process->next;
		aw_loop_set(loop, &process->source, -1, 0);
		close(fd);
		unlink(process->name.sun_path);
		aw_loop_bury(loop, &process->source);
	}
}
