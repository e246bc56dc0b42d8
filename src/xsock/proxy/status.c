// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The status sockets. At each request /proc shows which fds of a process are connections.
#include "xsock/proxy/status.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/place.h"
#include "xsock/base/rules.h"
#include "xsock/base/sockdiag.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/control.h"
#include "xsock/proxy/loop.h"

#define LINE_MAX_BYTES 256
#define STATUS_PREFIX "sockets." /* followed by the process id */
#define DIRECTORY_MAX 80 /* a directory and the socket's name must fit into a sockaddr_un */

struct process {
	struct process *next;
	struct aw_loop_source source;
	pid_t pid;
	struct sockaddr_un name;
};

static struct process *processes;

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

static const char *mode_name(enum aw_xs_mode mode)
{
	if (aw_xs_mode_is_tls_plain(mode))
		return AW_XS_TLS_PLAIN_WORD;
	return mode == AW_XS_RSOCKETS ? "rsockets" : "on";
}

static void print_conn(int to, int fd, const struct aw_proxy_conn *conn)
{
	struct aw_line *of = aw_bridge_line(conn->bridge);
	const union aw_address *remote = &conn->remote;
	char ip[INET6_ADDRSTRLEN] = "-", peer[INET6_ADDRSTRLEN + 16], line[LINE_MAX_BYTES];
	struct aw_xs_stats stats;
	int len;

	of->ops->stats(of, &stats);
	if (remote->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &remote->v4.sin_addr, ip, sizeof(ip));
		sprintf(peer, "%s:%u", ip, ntohs(remote->v4.sin_port));
	} else {
		inet_ntop(AF_INET6, &remote->v6.sin6_addr, ip, sizeof(ip));
		sprintf(peer, "[%s]:%u", ip, ntohs(remote->v6.sin6_port));
	}
	len = snprintf(line, sizeof(line), "%d %s %s %llu %llu %u %u %s\n", fd,
		       mode_name((enum aw_xs_mode)conn->mode), peer,
		       (unsigned long long)stats.bytes_in, (unsigned long long)stats.bytes_out,
		       stats.send_credits, stats.receive_credits, state_name(stats.state));
	(void)send(to, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void print_process(int to, pid_t pid)
{
	const struct aw_proxy_conn *conn;
	struct dirent *entry;
	char path[64];
	uint64_t ino;
	DIR *dir;

	sprintf(path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	/*
	 * Only root can read the fds of a process that has changed its user: the numbers are then those that its connections
	 * began with.
	 */
	for (conn = aw_conns_first(); !dir && conn; conn = LIST_NEXT(conn, all))
		if (conn->pid == pid)
			print_conn(to, conn->fd, conn);
	while (dir && (entry = readdir(dir))) {
		conn = aw_sockdiag_fd(dirfd(dir), entry->d_name, &ino) ? aw_conns_find(ino) : NULL;
		if (conn)
			print_conn(to, atoi(entry->d_name), conn);
	}
	if (dir)
		closedir(dir);
}

static void status_ready(struct aw_loop_source *source, uint32_t events)
{
	struct process *process = source->owner;
	int to = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	if (to < 0 && errno != EAGAIN) /* no fd or memory: the next review tries again */
		(void)aw_loop_set(source, source->fd, 0);
	if (to < 0)
		return;
	aw_control_catch_up();
	print_process(to, process->pid);
	close(to);
}

static bool make_at(char path[DIRECTORY_MAX], const char *base, const char *name)
{
	return snprintf(path, DIRECTORY_MAX, "%s/%s", base, name) < DIRECTORY_MAX &&
	       (mkdir(path, 0700) == 0 || errno == EEXIST) && aw_place_is_ours(path);
}

/* Finds the directory that another proxy process has made under a random name, or makes one. */
static bool make_elsewhere(char path[DIRECTORY_MAX], const char *name)
{
	char pattern[DIRECTORY_MAX];
	bool found = false;
	glob_t others;

	snprintf(pattern, sizeof(pattern), "/tmp/%s-*", name);
	if (glob(pattern, GLOB_NOSORT, NULL, &others) == 0) {
		for (size_t i = 0; i < others.gl_pathc && !found; i++)
			found = snprintf(path, DIRECTORY_MAX, "%s", others.gl_pathv[i]) <
					DIRECTORY_MAX &&
				aw_place_is_ours(path);
		globfree(&others);
	}
	if (found)
		return true;
	snprintf(path, DIRECTORY_MAX, "/tmp/%s-XXXXXX", name);
	return mkdtemp(path);
}

static struct sockaddr_un name_in(const char directory[DIRECTORY_MAX], pid_t pid)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path, sizeof(name.sun_path), "%.*s/" STATUS_PREFIX "%d", DIRECTORY_MAX,
		 directory, (int)pid);
	return name;
}

/* Removes the sockets at which no process listens, because their proxy processes were killed. */
static void remove_left_over(const char directory[DIRECTORY_MAX])
{
	DIR *dir = opendir(directory);
	struct sockaddr_un name;
	struct dirent *entry;
	bool refused;
	int fd, pid;

	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, STATUS_PREFIX "%d", &pid) != 1 || kill(pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		name = name_in(directory, pid);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		refused = fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0 &&
			  errno == ECONNREFUSED;
		if (fd >= 0)
			close(fd);
		if (refused)
			unlink(name.sun_path);
	}
	if (dir)
		closedir(dir);
}

static const char *find_directory(void)
{
	static char path[DIRECTORY_MAX];
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char name[32];

	if (path[0] && aw_place_is_ours(path))
		return path;
	sprintf(name, AW_PLACE_NAME, (unsigned)geteuid());
	if (!(runtime && aw_place_is_ours(runtime) && make_at(path, runtime, name)) &&
	    !make_at(path, "/tmp", name) && !make_elsewhere(path, name)) {
		aw_log(AW_LOG_WARN,
		       "nobody can ask for the status: no directory in /tmp: %s: set "
		       "XDG_RUNTIME_DIR to one of your own",
		       strerror(errno));
		path[0] = '\0';
	} else {
		remove_left_over(path);
	}
	return path;
}

static int status_listen(struct process *process)
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

void aw_status_serve(pid_t pid)
{
	struct process *process = processes;
	const char *directory;
	int fd;

	while (process && process->pid != pid)
		process = process->next;
	if (pid <= 0 || process)
		return;
	directory = find_directory();
	process = directory[0] ? calloc(1, sizeof(*process)) : NULL;
	if (!process)
		return;
	process->pid = pid;
	process->source =
		(struct aw_loop_source){ .fd = -1, .ready = status_ready, .owner = process };
	process->name = name_in(directory, pid);
	fd = status_listen(process);
	if (fd < 0 || aw_loop_set(&process->source, fd, EPOLLIN) != 0) {
		aw_log(AW_LOG_WARN, "no socket for 'anywarp sockets --status' at %s: %s",
		       process->name.sun_path, strerror(errno));
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
			(void)aw_loop_set(&process->source, fd, EPOLLIN);
			at = &process->next;
			continue;
		}
		*at = process->next;
		aw_loop_set(&process->source, -1, 0);
		close(fd);
		unlink(process->name.sun_path);
		aw_loop_free_later(&process->source);
	}
}
