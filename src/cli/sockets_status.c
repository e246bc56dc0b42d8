// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp sockets --status: lists a process's records and pairs, and asks the process or its proxy process, by a
// Unix socket, which other fds of the process are in iWARP mode. The answer comes from another
// process: it is shown, never trusted.
#define _GNU_SOURCE // struct ucred, fopencookie
#include "cli/sockets.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/process.h"
#include "cli/sockets_plain.h"
#include "xsock/framed/census.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define DIRECTORY "anywarp-%u"
#define ANSWER_TIMEOUT_S 5
#define LINE_BYTES_MAX 512
#define COMPLAINT_BYTES (PATH_MAX + 128)

// A process tells of a connection by a line with these fields.
enum {
	FIELDS = 8
};
static const enum sockets_column columns[FIELDS] = {
	SOCKETS_FD,
	SOCKETS_MODE,
	SOCKETS_PEER,
	SOCKETS_BYTES_IN,
	SOCKETS_BYTES_OUT,
	SOCKETS_SEND_CREDITS,
	SOCKETS_RECEIVE_CREDITS,
	SOCKETS_STATE,
};
#define LINES_MAX 65536 // no fd from there on is in iWARP mode

bool aw_sockets_fail(const char *format, ...)
{
	va_list args;

	fputs(SOCKETS_WHO ": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

// The directory of a process in /proc belongs to its effective user.
static bool find_owner(pid_t pid, uid_t *owner)
{
	char path[32];
	struct stat proc;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &proc) != 0) {
		if (kill(pid, 0) != 0 && errno == ESRCH)
			return aw_sockets_fail(
				"no process %d: 'pgrep -a NAME' finds the number of one", (int)pid);
		return aw_sockets_fail("cannot look at process %d: %s: check that /proc is mounted",
				       (int)pid, strerror(errno));
	}
	*owner = proc.st_uid;
	if (geteuid() == 0 || geteuid() == *owner)
		return true;
	return aw_sockets_fail("process %d is not yours but of uid %u: ask as that user or as root",
			       (int)pid, (unsigned)*owner);
}

// True when the directory is one in which only its owner can have put a socket.
static bool is_owners(const char *path, uid_t owner)
{
	struct stat dir;

	return lstat(path, &dir) == 0 && S_ISDIR(dir.st_mode) && dir.st_uid == owner &&
	       (dir.st_mode & 0777) == 0700;
}

// True when the library is in the process, and where that cannot be seen.
static bool has_library(pid_t pid)
{
	char line[LINE_BYTES_MAX];
	bool found = false;
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
	maps = fopen(line, "re");
	if (!maps)
		return true;
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, SOCKETS_LIB);
	fclose(maps);
	return found;
}

// Adds a line of eight fields to the table. A line with another number of fields is wrong.
static bool add_line(char *line, struct sheet_row row, struct sheet *table)
{
	char *save = NULL;
	size_t count = 0;

	for (char *field = strtok_r(line, " \n", &save); field;
	     field = strtok_r(NULL, " \n", &save)) {
		if (count == FIELDS)
			return false;
		snprintf(row.fields[columns[count++]], SHEET_FIELD_MAX, "%s", field);
	}
	if (count == FIELDS)
		aw_sheet_add(table, &row);
	return count == FIELDS;
}

// A process that is asked, which may be stopped, or hostile and send a byte now and then: everything together has to end
// by until_ns.
struct asked {
	pid_t pid;
	int64_t until_ns;
	int fd;
};

// Returns how long it may still take; 0: the time is over.
static int left_ms(const struct asked *asked)
{
	int64_t left_ns = asked->until_ns - aw_now_ns();

	return left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
}

// The read of a stream (fopencookie). ETIMEDOUT: the time is over; fgets takes EAGAIN for no error.
static ssize_t read_in_time(void *cookie, char *buf, size_t len)
{
	const struct asked *asked = cookie;
	struct pollfd pollfd = { .fd = asked->fd, .events = POLLIN };

	if (poll(&pollfd, 1, left_ms(asked)) > 0)
		return read(asked->fd, buf, len);
	errno = ETIMEDOUT;
	return -1;
}

static bool read_answer(struct asked *asked, struct sheet *table)
{
	struct sheet_row row = aw_sockets_row_begin(asked->pid);
	char line[LINE_BYTES_MAX];
	FILE *answer = fopencookie(asked, "r", (cookie_io_functions_t){ .read = read_in_time });
	bool right = answer;
	int pid = (int)asked->pid;

	strcpy(row.fields[SOCKETS_KIND], "proxy");
	errno = 0;
	for (size_t n = 0; right && fgets(line, sizeof(line), answer); n++)
		right = n < LINES_MAX && add_line(line, row, table);
	if (!right)
		(void)aw_sockets_fail(
			"process %d does not answer as it should: is it another version?", pid);
	else if (ferror(answer) && errno == ETIMEDOUT)
		right = aw_sockets_fail(
			"process %d does not answer within %d seconds: is it stopped?", pid,
			ANSWER_TIMEOUT_S);
	else if (ferror(answer))
		right = aw_sockets_fail("process %d did not end its answer: %s", pid,
					strerror(errno));
	if (answer)
		fclose(answer);
	close(asked->fd);
	return right;
}

// Connects to the process that answers in this directory. False: *error is the errno.
static bool reach(struct asked *asked, const char *directory, int *error)
{
	int ms = left_ms(asked);
	struct timeval timeout = { ms / 1000, ms % 1000 * 1000 };
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	asked->fd = ms ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	*error = !ms ? ETIMEDOUT : errno;
	if (asked->fd < 0)
		return false;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/sockets.%d", directory, (int)asked->pid);
	setsockopt(asked->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(asked->fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return true;
	*error = errno == EAGAIN ? ETIMEDOUT : errno;
	close(asked->fd);
	return false;
}

enum ask_outcome {
	ANSWERED,
	FAILED,
	NOBODY,
};

// Lists where else a proxy process of owner's may have put its sockets: in the usual XDG_RUNTIME_DIR, in /tmp, or beside
// that where somebody else was first there. *sure: how many of them have a fixed name, which no user can have made up.
static void list_directories(uid_t owner, glob_t *found, size_t *sure)
{
	static const char *const patterns[] = { "/run/user/%u/" DIRECTORY, "/tmp/" DIRECTORY,
						"/tmp/" DIRECTORY "-*" };
	char path[PATH_MAX];
	int flags = 0;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++, flags = GLOB_APPEND) {
		*sure = i ? found->gl_pathc : 0; // the last pattern's names come behind them
		snprintf(path, sizeof(path), patterns[i], (unsigned)owner, (unsigned)owner);
		(void)glob(path, flags, NULL, found);
	}
}

static enum ask_outcome ask_at(struct asked *asked, uid_t owner, const char *directory,
			       struct sheet *table)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int error;

	if (!reach(asked, directory, &error)) {
		if (error == ENOENT || error == ECONNREFUSED)
			return NOBODY;
		(void)aw_sockets_fail("cannot ask process %d: %s", (int)asked->pid,
				      strerror(error));
		return FAILED;
	}
	// The peer, which is the process or its proxy process, has to belong to the user whose process was asked.
	if (getsockopt(asked->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.uid != owner) {
		(void)aw_sockets_fail(
			"it is process %d of uid %u that answers, and not uid %u: do not believe it",
			(int)peer.pid, (unsigned)peer.uid, (unsigned)owner);
		close(asked->fd);
		return FAILED;
	}
	return read_answer(asked, table) ? ANSWERED : FAILED;
}

static void complain(const char *directory, uid_t owner, char complaint[COMPLAINT_BYTES])
{
	snprintf(complaint, COMPLAINT_BYTES,
		 "%s is not a directory of uid %u with mode 0700: remove it, and "
		 "start the process anew",
		 directory, (unsigned)owner);
}

// Asks in each directory in turn. complaint is set where somebody else has a directory in a proxy
// process's place; it is for the case that nobody answers.
static enum ask_outcome ask_owners(struct asked *asked, uid_t owner, struct sheet *table,
				   char complaint[COMPLAINT_BYTES])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	enum ask_outcome outcome = NOBODY;
	char path[PATH_MAX];
	struct stat dir;
	size_t sure = 0;
	glob_t found;

	// A proxy process of owner's has its place in its XDG_RUNTIME_DIR, which we take to be ours.
	if (runtime &&
	    snprintf(path, sizeof(path), "%s/" DIRECTORY, runtime, (unsigned)owner) < PATH_MAX &&
	    lstat(path, &dir) == 0) {
		if (is_owners(path, owner))
			outcome = ask_at(asked, owner, path, table);
		else
			complain(path, owner, complaint);
	}
	list_directories(owner, &found, &sure);
	for (size_t i = 0; i < found.gl_pathc && outcome == NOBODY; i++) {
		if (is_owners(found.gl_pathv[i], owner))
			outcome = ask_at(asked, owner, found.gl_pathv[i], table);
		else if (i < sure)
			complain(found.gl_pathv[i], owner, complaint);
	}
	globfree(&found);
	return outcome;
}

// A process that was root's when its proxy process began has one of root's, which root alone may
// ask.
static enum ask_outcome ask(pid_t pid, uid_t owner, struct sheet *table,
			    char complaint[COMPLAINT_BYTES])
{
	struct asked asked = { pid, aw_now_ns() + ANSWER_TIMEOUT_S * INT64_C(1000000000), -1 };
	enum ask_outcome outcome = ask_owners(&asked, owner, table, complaint);

	if (outcome == NOBODY && owner != 0 && geteuid() == 0)
		outcome = ask_owners(&asked, 0, table, complaint);
	return outcome;
}

static int list_one(pid_t pid, uid_t owner, struct sheet *table, struct sockets_plain *plain)
{
	char complaint[COMPLAINT_BYTES] = "";
	bool right = aw_sockets_records(pid, true, table);
	enum ask_outcome outcome = ask(pid, owner, table, complaint);

	aw_sockets_pairs(pid, table, plain);
	if (outcome == NOBODY && complaint[0])
		right = aw_sockets_fail("%s", complaint);
	else if (outcome == NOBODY && right && table->count == 0 && !has_library(pid))
		right = aw_sockets_fail(
			"process %d does not run under 'anywarp sockets': start it so, or with " SOCKETS_LIB
			" in LD_PRELOAD",
			(int)pid);
	else if (outcome == NOBODY && right && table->count == 0)
		printf("process %d has no socket in mode on or auto\n", (int)pid);
	if (outcome == ANSWERED || table->count > 0)
		aw_sheet_print(table);
	return right && outcome != FAILED ? CLI_OK : CLI_FAILED;
}

struct status {
	struct sheet table;
	struct sockets_plain plain;
};

static bool list_process(pid_t pid, uid_t owner, void *arg)
{
	struct status *status = arg;
	struct sheet *table = &status->table;
	struct sheet_row row = aw_sockets_row_begin(pid);
	char complaint[COMPLAINT_BYTES];
	bool right;

	// A proxy process has fds of the connections that it carries, which are listed for their programs.
	if (!strcmp(row.fields[SOCKETS_PROGRAM], AW_CENSUS_PROXY))
		return true;
	right = aw_sockets_records(pid, false, table);
	aw_sockets_pairs(pid, table, &status->plain);
	return ask(pid, owner, table, complaint) != FAILED && right;
}

int aw_sockets_status(const char *text)
{
	static struct status status;
	uid_t owner = 0;
	pid_t pid = 0;
	int result;

	if (text && !aw_process_parse(text, &pid)) {
		(void)aw_sockets_fail("--status needs the number of a process, not '%s'", text);
		return CLI_USAGE;
	}
	if (!aw_process_can_look(SOCKETS_WHO) || (text && !find_owner(pid, &owner)))
		return CLI_FAILED;
	status.table = aw_sockets_table_begin();
	if (text) {
		result = list_one(pid, owner, &status.table, &status.plain);
	} else {
		bool right = aw_process_each(SOCKETS_WHO, list_process, &status);

		if (right && status.table.count == 0)
			puts("no process has a socket in mode on or auto");
		else if (status.table.count > 0)
			aw_sheet_print(&status.table);
		result = right ? CLI_OK : CLI_FAILED;
	}
	aw_sockets_plain_print(&status.plain);
	aw_sheet_clear(&status.table);
	aw_sockets_plain_fini(&status.plain);
	return result;
}
