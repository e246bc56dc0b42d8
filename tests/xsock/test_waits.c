// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is passed to a proxy process, and whoever waits for an answer of its, does not stay with it, or keep it from others.
#include "requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

/* Its peer takes no more, so that it lingers for longer than the test has patience. */
static int make_lingering(int *peer)
{
	struct linger on = { .l_onoff = 1, .l_linger = 10 * PATIENCE_S };
	int listener = listen_at(0), fd = dial(listener);
	char octets[65536] = { 0 };

	*peer = accept(listener, NULL, NULL);
	close(listener);
	while (send(fd, octets, sizeof(octets), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
	return fd;
}

#define LINGERING 20 /* more than are waited for */

/* The proxy process has the last fd of each. */
static void close__keeps_nobody_waiting(void **state)
{
	struct scene *s = *state;
	int peers[LINGERING];

	kill(s->proxy, SIGSTOP);
	for (int i = 0; i < LINGERING; i++) {
		struct aw_request request =
			new_request(i % 2 ? AW_REQUEST_START : AW_REQUEST_PRESENT); /* refused */
		int fd = make_lingering(&peers[i]);

		tell(s, &request, &fd, 1);
		close(fd);
	}
	kill(s->proxy, SIGCONT);
	assert_int_equal(keepalive(s), 0);
	for (int i = 0; i < LINGERING; i++)
		close(peers[i]);
}

static bool reaches(const char *name, int len)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	bool reached;

	memcpy(to.sun_path, name, (size_t)len);
	reached = connect(fd, (struct sockaddr *)&to,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) == 0;
	close(fd);
	return reached;
}

#define SOCKETS_MAX 256

static unsigned long sockets_of[SOCKETS_MAX]; /* inodes */
static int socket_count;

/* Another user may not look into the proxy process's fds. */
static void note_sockets(pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	sprintf(path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	socket_count = 0;
	while ((entry = readdir(dir))) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) < 0 ||
		    sscanf(target, "socket:[%lu]", &sockets_of[socket_count]) != 1)
			continue;
		assert_true(++socket_count < SOCKETS_MAX);
	}
	closedir(dir);
}

static bool is_noted(unsigned long inode)
{
	int at = 0;

	while (at < socket_count && sockets_of[at] != inode)
		at++;
	return at < socket_count;
}

/* Every socket of the proxy process that has a name. */
static void try_doors(const struct scene *s)
{
	FILE *sockets = fopen("/proc/net/unix", "r");
	char line[256], name[128];
	unsigned long inode;
	int tried = 0;

	(void)s;
	CHECK(sockets);
	while (fgets(line, sizeof(line), sockets)) {
		int len;

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %127s", &inode, name) != 2 ||
		    !is_noted(inode))
			continue;
		len = (int)strlen(name);
		if (name[0] == '@')
			name[0] = '\0';
		else
			len++;
		CHECK(!reaches(name, len));
		tried++;
	}
	fclose(sockets);
	CHECK(tried > 0);
}

static void status__is_its_users_alone(void **state)
{
	struct scene *s = *state;
	char name[64];

	assert_int_equal(keepalive(s), 0);
	note_sockets(s->proxy);
	if (geteuid() == 0)
		as_another(try_doors, s);
	sprintf(name, "/tmp/anywarp-%u/sockets.%d", (unsigned)geteuid(), (int)getpid());
	assert_true(reaches(name, (int)strlen(name) + 1));
}

/* How often the process's first thread has gone to sleep. */
static long count_sleeps(pid_t pid)
{
	char path[64], line[256];
	long count = -1;
	FILE *file;

	sprintf(path, "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) &&
	       sscanf(line, "voluntary_ctxt_switches: %ld", &count) != 1)
		;
	fclose(file);
	return count;
}

static int ask_status(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	sprintf(name.sun_path, "/tmp/anywarp-%u/sockets.%d", (unsigned)geteuid(), (int)getpid());
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

#define SLEEPS 3 /* the proxy process may have been about to sleep once */

/* A client gets its answer once there is an fd for it; until then the proxy process sleeps. */
static void status__waits_for_an_fd(void **state)
{
	struct scene *s = *state;
	struct rlimit limit, none;
	time_t end = time(NULL) + PATIENCE_S;
	char line[256];
	long before;
	int fd;

	assert_int_equal(keepalive(s), 0);
	assert_int_equal(prlimit(s->proxy, RLIMIT_NOFILE, NULL, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(prlimit(s->proxy, RLIMIT_NOFILE, &none, NULL), 0);
	before = count_sleeps(s->proxy);
	fd = ask_status();
	while (count_sleeps(s->proxy) < before + SLEEPS) {
		assert_true(time(NULL) < end);
		sched_yield();
	}
	assert_int_equal(prlimit(s->proxy, RLIMIT_NOFILE, &limit, NULL), 0);
	assert_true(recv(fd, line, sizeof(line), 0) > 0);
	close(fd);
}

int main(void)
{
#define REQUESTS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		REQUESTS_TEST(status__is_its_users_alone),
		REQUESTS_TEST(close__keeps_nobody_waiting),
		REQUESTS_TEST(status__waits_for_an_fd),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
