// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/process.h"

#include "base/slice.h"
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "ANYWARP_LOG"
#define PID_MOST (1ul << 22) // the kernel's PID_MAX_LIMIT

bool aw_process_parse(const char *text, pid_t *pid)
{
	unsigned long number;

	if (!aw_slice_number(aw_slice_of(text), PID_MOST, &number) || !number)
		return false;
	*pid = (pid_t)number;
	return true;
}

bool aw_process_number(const char *who, const char *text, pid_t *pid)
{
	if (*pid) {
		fprintf(stderr,
			"%s: takes one PID, and '%s' is another: 'pidof -s NAME' finds one\n", who,
			text);
		return false;
	}
	if (aw_process_parse(text, pid))
		return true;
	fprintf(stderr, "%s: '%s' is no process ID: 'pidof -s NAME' finds one\n", who, text);
	return false;
}

bool aw_process_can_look(const char *who)
{
	if (access("/proc/self", F_OK) == 0)
		return true;
	fprintf(stderr, "%s: there are no processes in /proc: mount -t proc proc /proc\n", who);
	return false;
}

// Returns whether the file is another's library: it lacks the name of a variable that anywarp's read.
static bool is_foreign(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat file;
	void *bytes = MAP_FAILED;
	bool foreign = false;

	if (fd >= 0 && fstat(fd, &file) == 0 && file.st_size > 0)
		bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes != MAP_FAILED) {
		foreign = !memmem(bytes, (size_t)file.st_size, MARK, strlen(MARK));
		munmap(bytes, (size_t)file.st_size);
	}
	if (fd >= 0)
		close(fd);
	return foreign;
}

bool aw_process_foreign(pid_t pid, char path[PATH_MAX])
{
	char line[PATH_MAX + 128], root[PATH_MAX + 32];
	bool found = false;
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
	maps = fopen(line, "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		const char *file = strchr(line, '/'), *name = strrchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!file || strncmp(name, "/" CLI_VERBS_LIB, strlen("/" CLI_VERBS_LIB)) != 0)
			continue;
		snprintf(path, PATH_MAX, "%s", file);
		snprintf(root, sizeof(root), "/proc/%d/root%s", (int)pid, path);
		found = is_foreign(root);
	}
	if (maps)
		fclose(maps);
	return found;
}

bool aw_process_each(const char *who, bool (*look)(pid_t pid, uid_t owner, void *arg), void *arg)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool right = true;
	struct stat file;
	pid_t pid;

	if (!proc) {
		fprintf(stderr, "%s: cannot look at /proc: %s\n", who, strerror(errno));
		return false;
	}
	while ((entry = readdir(proc))) {
		if (aw_process_parse(entry->d_name, &pid) &&
		    fstatat(dirfd(proc), entry->d_name, &file, 0) == 0 &&
		    (geteuid() == 0 || geteuid() == file.st_uid))
			right &= look(pid, file.st_uid, arg);
	}
	closedir(proc);
	return right;
}

bool aw_process_report(const char *who, enum aw_stat_result result, pid_t pid)
{
	const char *reason = strerror(errno);
	int number = (int)pid;
	char library[PATH_MAX];

	switch (result) {
	case AW_STAT_READ:
		break;
	case AW_STAT_ABSENT:
		if (aw_process_foreign(pid, library))
			fprintf(stderr,
				"%s: process %d runs on %s, not on anywarp's library: its "
				"LD_LIBRARY_PATH was set anew, by a script before it, or LD_PRELOAD "
				"names that file\n",
				who, number, library);
		else
			fprintf(stderr,
				"%s: process %d has no device of anywarp open: does it run under "
				"'anywarp run'?\n",
				who, number);
		break;
	case AW_STAT_GONE:
		fprintf(stderr, "%s: no process %d: 'pgrep -a NAME' finds the number of one\n", who,
			number);
		break;
	case AW_STAT_REFUSED:
		fprintf(stderr, "%s: cannot look at the fds of process %d: %s: ask as root\n", who,
			number, reason);
		break;
	case AW_STAT_STRANGE:
		fprintf(stderr,
			"%s: process %d has statistics of another version of anywarp: ask with "
			"that version's command\n",
			who, number);
		break;
	case AW_STAT_FAILED:
		fprintf(stderr, "%s: cannot read the statistics of process %d: %s\n", who, number,
			reason);
		break;
	}
	return false;
}
