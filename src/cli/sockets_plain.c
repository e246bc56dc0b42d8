// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The notes are in a file that another process may change at any time, or has made to look like one of ours: it is read once, by
// pread(2), and no number in it is used as an index before it is checked.
#include "cli/sockets_plain.h"

#include "cli/cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK "/memfd:" AW_PLAIN_NAME " (deleted)"

// Opens the notes behind a link of /proc/PID/fd; -1: it is another file's. O_PATH opens any file without an effect on it.
static int open_notes(int fds, const char *name, struct stat *file)
{
	char text[sizeof(LINK)] = "", again[32];
	int path, fd = -1;

	if (readlinkat(fds, name, text, sizeof(text)) != sizeof(LINK) - 1 ||
	    memcmp(text, LINK, sizeof(LINK) - 1) != 0)
		return -1;
	path = openat(fds, name, O_PATH | O_CLOEXEC);
	if (path >= 0 && fstat(path, file) == 0 && S_ISREG(file->st_mode) &&
	    file->st_size == (off_t)sizeof(struct aw_plain_table)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", path);
		fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	if (path >= 0)
		close(path);
	return fd;
}

// Returns whether the notes with that inode are counted already.
static bool is_seen(struct sockets_plain *plain, ino_t ino)
{
	ino_t *longer;

	for (size_t i = 0; i < plain->seen_count; i++)
		if (plain->seen[i] == ino)
			return true;
	longer = realloc(plain->seen, (plain->seen_count + 1) * sizeof(ino));
	if (longer) {
		plain->seen = longer;
		plain->seen[plain->seen_count++] = ino;
	}
	return !longer;
}

void aw_sockets_plain_read(struct sockets_plain *plain, int fds)
{
	int again = openat(fds, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	uint32_t counts[AW_PLAIN_REASONS];
	DIR *links = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *entry;
	struct stat file;

	memset(plain->places, 0, sizeof(plain->places));
	while (links && fd < 0 && (entry = readdir(links)))
		fd = open_notes(fds, entry->d_name, &file);
	if (fd >= 0) {
		if (pread(fd, plain->places, sizeof(plain->places), 0) != sizeof(plain->places))
			memset(plain->places, 0, sizeof(plain->places));
		if (!is_seen(plain, file.st_ino) &&
		    pread(fd, counts, sizeof(counts), offsetof(struct aw_plain_table, counts)) ==
			    sizeof(counts))
			for (size_t i = 0; i < AW_PLAIN_REASONS; i++)
				plain->counts[i] += counts[i];
		close(fd);
	}
	if (links)
		closedir(links);
}

enum aw_plain aw_sockets_plain_find(const struct sockets_plain *plain, uint64_t ino)
{
	uint64_t place = plain->places[ino % AW_PLAIN_PLACES];

	return place >> 8 == ino && (place & 0xff) < AW_PLAIN_REASONS
		       ? (enum aw_plain)(place & 0xff)
		       : AW_PLAIN_NOT;
}

void aw_sockets_plain_print(const struct sockets_plain *plain)
{
	bool any = false;

	for (int why = AW_PLAIN_NOT + 1; why < AW_PLAIN_REASONS; why++) {
		const struct aw_plain_words *words = &aw_plain_words[why];

		if (!plain->counts[why])
			continue;
		if (!any)
			puts("\nconnections that are or were plain TCP, and why:");
		any = true;
		printf("%7" PRIu64 "  %s: %s%s%s\n", plain->counts[why], words->word, words->text,
		       words->remedy ? ": " : "", words->remedy ? words->remedy : "");
	}
}

void aw_sockets_plain_fini(struct sockets_plain *plain)
{
	free(plain->seen);
	*plain = (struct sockets_plain){ 0 };
}
