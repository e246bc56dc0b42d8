// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// device_gids TYPE: holds the port's files in /sys/class/infiniband to what the verbs say of the GID table, every
// entry, its type as TYPE and its interface; prints each. An entry that is not used has no type and no
// interface: reading them is EINVAL, as of the kernel's.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 64

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

/* Reads the file of that entry, without its newline. Returns 0 or an errno. */
static int entry_read(const char *kind, unsigned int index, char text[TEXT_MAX])
{
	char path[256];
	ssize_t len;
	int fd, err;

	snprintf(path, sizeof(path), "/sys/class/infiniband/anywarp0/ports/1/%s/%u", kind, index);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return errno;
	len = read(fd, text, TEXT_MAX - 1);
	err = errno;
	close(fd);
	if (len < 0)
		return err;
	if (len < 2 || text[len - 1] != '\n')
		fail("%s: no line of text", path);
	text[len - 1] = '\0';
	return 0;
}

static void entry_hold(const char *kind, unsigned int index, const char *wanted)
{
	char text[TEXT_MAX];
	int err = entry_read(kind, index, text);

	if (err)
		fail("%s/%u: %s", kind, index, strerror(err));
	if (strcmp(text, wanted) != 0)
		fail("%s/%u is '%s', not '%s'", kind, index, text, wanted);
}

static void gid_text(const union ibv_gid *gid, char text[TEXT_MAX])
{
	char *to = text;

	for (int i = 0; i < 16; i += 2)
		to += sprintf(to, "%s%02x%02x", i ? ":" : "", gid->raw[i], gid->raw[i + 1]);
}

static void fopen_holds(void)
{
	FILE *file = fopen("/sys/class/infiniband/anywarp0/ports/1/gid_attrs/types/0", "r");

	if (!file || getc(file) != EOF || !ferror(file) || errno != EINVAL)
		fail("types/0 of an unused entry can be read as a stream");
	fclose(file);
}

static void unused_hold(void)
{
	static const union ibv_gid none;
	char text[TEXT_MAX];

	gid_text(&none, text);
	entry_hold("gids", 0, text);
	if (entry_read("gid_attrs/types", 0, text) != EINVAL)
		fail("types/0 of an unused entry can be read");
	if (entry_read("gid_attrs/ndevs", 0, text) != EINVAL)
		fail("ndevs/0 of an unused entry can be read");
	fopen_holds();
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	static struct ibv_gid_entry entries[256];
	char text[TEXT_MAX], name[IF_NAMESIZE];
	ssize_t count = context ? ibv_query_gid_table(context, entries, 256, 0) : -1;

	if (argc != 2 || count < 0)
		fail("no device, or no TYPE");
	for (unsigned int i = 0; i < (size_t)count; i++) {
		gid_text(&entries[i].gid, text);
		entry_hold("gids", i, text);
		entry_hold("gid_attrs/types", i, argv[1]);
		entry_hold("gid_attrs/ndevs", i, if_indextoname(entries[i].ndev_ifindex, name));
		printf("%s %s\n", text, name);
	}
	if (!count)
		unused_hold();
	if (entry_read("gids", count ? (unsigned int)count : 1, text) != ENOENT)
		fail("there is an entry behind the table");
	ibv_close_device(context);
	ibv_free_device_list(list);
	return 0;
}
