// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp sockets --status: asks a process or its proxy process, by a Unix socket, which of the
// process's fds are in iWARP mode. The answer comes from another process: it is shown, never
// trusted.
#define _GNU_SOURCE // struct ucred
#include "cli/sockets.h"

#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
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
#define LINE_MAX_OCTETS 512
#define COMPLAINT_OCTETS (PATH_MAX + 128)

enum {
	FIELDS = 8
};

static const char *const titles[FIELDS] = {
	"fd", "mode", "peer", "bytes in", "bytes out", "send credits", "receive credits", "state",
};
static const int widths[FIELDS] = { 6, 4, 30, 14, 14, 12, 15, 0 };

__attribute__((format(printf, 1, 2))) static bool fail(const char *format, ...)
{
	va_list args;

	fputs(SOCKETS_WHO ": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

static bool read_pid(const char *text, pid_t *pid)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number < 1 || number > 1 << 22)
		return fail("--status needs the number of a process, not '%s'", text);
	*pid = (pid_t)number;
	return true;
}

// The directory of a process in /proc belongs to its effective user.
static bool find_owner(pid_t pid, uid_t *owner)
{
	char path[32];
	struct stat proc;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &proc) != 0) {
		if (kill(pid, 0) != 0 && errno == ESRCH)
			return fail("no process %d: 'pgrep -a NAME' finds the number of one",
				    (int)pid);
		return fail("cannot look at process %d: %s: check that /proc is mounted", (int)pid,
			    strerror(errno));
	}
	*owner = proc.st_uid;
	if (geteuid() == 0 || geteuid() == *owner)
		return true;
	return fail("process %d is not yours but of uid %u: ask as that user or as root", (int)pid,
		    (unsigned)*owner);
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
	char line[LINE_MAX_OCTETS];
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

// Reports that there is no socket, or that no process listens on it.
static bool nobody_answers(pid_t pid)
{
	if (!has_library(pid))
		return fail(
			"process %d does not run under 'anywarp sockets': start it so, or with " SOCKETS_LIB
			" in LD_PRELOAD",
			(int)pid);
	printf("process %d has had no socket in iWARP mode\n", (int)pid);
	return true;
}

// The peer, which is the process or its proxy process, has to belong to the user whose process was
// asked.
static bool check_peer(int fd, uid_t owner)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == owner)
		return true;
	return fail("it is process %d of uid %u that answers, and not uid %u: do not believe it",
		    (int)peer.pid, (unsigned)peer.uid, (unsigned)owner);
}

static void print_field(const char *text, size_t i)
{
	int width = widths[i];

	if (i == 0 || i == 3 || i == 4 || i == 5 || i == 6)
		printf("%*s", width, text);
	else
		printf("%-*s", width, text);
	fputs(i + 1 < FIELDS ? "  " : "\n", stdout);
}

// Prints a line of eight fields. A line with another number of fields is wrong; unprintable bytes,
// which could control a terminal, are replaced.
static bool print_line(char *line)
{
	char *fields[FIELDS + 1], *save = NULL;
	size_t count = 0;

	for (char *p = line; *p; p++) {
		if (!isprint((unsigned char)*p) && *p != '\n')
			*p = '?';
	}
	for (char *field = strtok_r(line, " \n", &save); field && count <= FIELDS;
	     field = strtok_r(NULL, " \n", &save))
		fields[count++] = field;
	if (count != FIELDS)
		return false;
	for (size_t i = 0; i < FIELDS; i++)
		print_field(fields[i], i);
	return true;
}

static bool print_table(int fd, pid_t pid)
{
	char line[LINE_MAX_OCTETS];
	FILE *answer = fdopen(fd, "r");
	bool right = answer;

	for (size_t i = 0; i < FIELDS; i++)
		print_field(titles[i], i);
	errno = 0;
	while (right && fgets(line, sizeof(line), answer))
		right = print_line(line);
	if (!right)
		(void)fail("process %d does not answer as it should: is it another version?",
			   (int)pid);
	else if (ferror(answer) && errno == EAGAIN)
		right = fail("process %d does not answer within %d seconds: is it stopped?",
			     (int)pid, ANSWER_TIMEOUT_S);
	else if (ferror(answer))
		right = fail("process %d did not end its answer: %s", (int)pid, strerror(errno));
	if (answer)
		fclose(answer);
	else
		close(fd);
	return right;
}

// Connects to the process that answers for pid in this directory. False: *error is the errno.
static bool reach(pid_t pid, const char *directory, int *fd, int *error)
{
	struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT_S };
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*error = *fd < 0 ? errno : 0;
	if (*fd < 0)
		return false;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/sockets.%d", directory, (int)pid);
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(*fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return true;
	*error = errno;
	close(*fd);
	return false;
}

enum outcome {
	ANSWERED,
	FAILED,
	NOBODY,
};

// Lists where a proxy process of owner's may have put its sockets: in its XDG_RUNTIME_DIR, which we
// take to be ours or the usual one, in /tmp, or beside that where somebody else was first there.
// *sure: how many of them have a fixed name, which no user can have made up.
static void list_directories(uid_t owner, glob_t *found, size_t *sure)
{
	static const char *const patterns[] = { "/run/user/%u/" DIRECTORY, "/tmp/" DIRECTORY,
						"/tmp/" DIRECTORY "-*" };
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];
	int flags = 0;

	if (runtime && snprintf(path, sizeof(path), "%s/" DIRECTORY, runtime, (unsigned)owner) <
			       (int)sizeof(path)) {
		(void)glob(path, flags, NULL, found);
		flags = GLOB_APPEND;
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++, flags = GLOB_APPEND) {
		*sure = found->gl_pathc; // the last pattern's names come behind them
		snprintf(path, sizeof(path), patterns[i], (unsigned)owner, (unsigned)owner);
		(void)glob(path, flags, NULL, found);
	}
}
static enum outcome ask_at(pid_t pid, uid_t owner, const char *directory)
{
	int fd, error;

	if (!reach(pid, directory, &fd, &error)) {
		if (error == ENOENT || error == ECONNREFUSED)
			return NOBODY;
		(void)fail("cannot ask process %d: %s", (int)pid, strerror(error));
		return FAILED;
	}
	if (!check_peer(fd, owner)) {
		close(fd);
		return FAILED;
	}
	return print_table(fd, pid) ? ANSWERED : FAILED;
}

// Asks in each directory in turn. complaint is set where somebody else has a directory in a proxy
// process's place; it is for the case that nobody answers.
static enum outcome ask(pid_t pid, uid_t owner, char complaint[COMPLAINT_OCTETS])
{
	enum outcome outcome = NOBODY;
	size_t sure = 0;
	glob_t found;

	list_directories(owner, &found, &sure);
	for (size_t i = 0; i < found.gl_pathc && outcome == NOBODY; i++) {
		if (is_owners(found.gl_pathv[i], owner))
			outcome = ask_at(pid, owner, found.gl_pathv[i]);
		else if (i < sure)
			snprintf(complaint, COMPLAINT_OCTETS,
				 "%s is not a directory of uid %u with mode 0700: remove it, and "
				 "start the process anew",
				 found.gl_pathv[i], (unsigned)owner);
	}
	globfree(&found);
	return outcome;
}

int aw_sockets_status(const char *text)
{
	char complaint[COMPLAINT_OCTETS] = "";
	enum outcome outcome;
	uid_t owner = 0;
	pid_t pid = 0;

	if (!read_pid(text, &pid))
		return CLI_USAGE;
	if (!find_owner(pid, &owner))
		return CLI_FAILED;
	outcome = ask(pid, owner, complaint);
	// A process that was root's when its proxy process began has one of root's, which root
	// alone may ask.
	if (outcome == NOBODY && owner != 0 && geteuid() == 0)
		outcome = ask(pid, 0, complaint);
	if (outcome == NOBODY && complaint[0])
		(void)fail("%s", complaint);
	else if (outcome == NOBODY && nobody_answers(pid))
		return CLI_OK;
	return outcome == ANSWERED ? CLI_OK : CLI_FAILED;
}
