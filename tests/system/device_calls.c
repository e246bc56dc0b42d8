// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// device_calls: comes to the device's files by every call that takes a path, also by those of programs that were
// built for an older libc or with _FORTIFY_SOURCE, as this one is. A line for each: its name, and yes or no.
#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"
#define PARENT "/sys/devices/platform/anywarp.00.0"
#define DEVICE PARENT "/infiniband/anywarp0"
#define DIRECTORY CLASS "/anywarp0/ports/1/gids"
#define FILE_THERE DIRECTORY "/0"
#define LINK_THERE "/dev/infiniband/uverbs_anywarp0"
#define STAT_VERSION 1 // of x86-64; other machines take 0 as well

typedef int (*open_2)(const char *, int);
typedef int (*openat_2)(int, const char *, int);
typedef int (*stat_old)(int, const char *, void *);
typedef int (*fstatat_old)(int, int, const char *, void *, int);

// What the compiler does not know, so that it lets libc check.
static volatile int read_only = O_RDONLY;
static volatile size_t room = PATH_MAX;

static union {
	struct stat file;
	struct stat64 file64;
} out;

static void told(const char *name, bool there)
{
	printf("%s %s\n", name, there ? "yes" : "no");
}

static bool closed(int fd)
{
	return fd >= 0 && close(fd) == 0;
}

static void by_open(void)
{
	static const char *const two[] = { "__open_2", "__open64_2" };
	static const char *const at_two[] = { "__openat_2", "__openat64_2" };

	told("open", closed(open(FILE_THERE, read_only)));
	told("open64", closed(open64(FILE_THERE, read_only)));
	told("openat", closed(openat(AT_FDCWD, FILE_THERE, read_only)));
	told("openat64", closed(openat64(AT_FDCWD, FILE_THERE, read_only)));
	for (int i = 0; i < 2; i++) {
		open_2 call = (open_2)dlsym(RTLD_DEFAULT, two[i]);
		openat_2 at = (openat_2)dlsym(RTLD_DEFAULT, at_two[i]);

		told(two[i], call && closed(call(FILE_THERE, O_RDONLY)));
		told(at_two[i], at && closed(at(AT_FDCWD, FILE_THERE, O_RDONLY)));
	}
}

static void by_stat(void)
{
	static const char *const old[] = { "__xstat", "__xstat64", "__lxstat", "__lxstat64" };
	static const char *const at_old[] = { "__fxstatat", "__fxstatat64" };
	struct statx extended;

	told("stat", stat(FILE_THERE, &out.file) == 0);
	told("stat64", stat64(FILE_THERE, &out.file64) == 0);
	told("lstat", lstat(FILE_THERE, &out.file) == 0);
	told("lstat64", lstat64(FILE_THERE, &out.file64) == 0);
	told("fstatat", fstatat(AT_FDCWD, FILE_THERE, &out.file, 0) == 0);
	told("statx", statx(AT_FDCWD, FILE_THERE, 0, STATX_ALL, &extended) == 0);
	for (int i = 0; i < 4; i++) {
		stat_old call = (stat_old)dlsym(RTLD_DEFAULT, old[i]);

		memset(&out, 0, sizeof(out));
		told(old[i], call && call(STAT_VERSION, FILE_THERE, &out) == 0 &&
				     S_ISREG(out.file.st_mode));
	}
	for (int i = 0; i < 2; i++) {
		fstatat_old call = (fstatat_old)dlsym(RTLD_DEFAULT, at_old[i]);

		memset(&out, 0, sizeof(out));
		told(at_old[i], call && call(STAT_VERSION, AT_FDCWD, FILE_THERE, &out, 0) == 0 &&
					S_ISREG(out.file.st_mode));
	}
}

static void by_link(void)
{
	char to[PATH_MAX];
	char *named = canonicalize_file_name(FILE_THERE);

	told("readlink", readlink(LINK_THERE, to, room) > 0);
	told("readlinkat", readlinkat(AT_FDCWD, LINK_THERE, to, room) > 0);
	told("realpath", realpath(FILE_THERE, to) != NULL);
	told("canonicalize_file_name", named != NULL);
	free(named);
}

static void by_directory(void)
{
	DIR *directory = opendir(DIRECTORY);
	struct dirent **names = NULL;
	int count = scandir(DIRECTORY, &names, NULL, alphasort);
	int count64 = scandir64(DIRECTORY, (struct dirent64 ***)&names, NULL, alphasort64);

	told("opendir", directory != NULL);
	told("scandir", count > 2);
	told("scandir64", count64 > 2);
	if (directory)
		closedir(directory);
}

static void by_access(void)
{
	FILE *file = fopen(FILE_THERE, "r"), *file64 = fopen64(FILE_THERE, "r");

	told("fopen", file && fclose(file) == 0);
	told("fopen64", file64 && fclose(file64) == 0);
	told("access", access(FILE_THERE, R_OK) == 0);
	told("faccessat", faccessat(AT_FDCWD, FILE_THERE, R_OK, 0) == 0);
	told("euidaccess", euidaccess(FILE_THERE, R_OK) == 0);
	told("eaccess", eaccess(FILE_THERE, R_OK) == 0);
}

/* Where a path begins in a directory that is open, or in the working directory. */
static void by_relatives(void)
{
	int root = open("/", O_RDONLY | O_DIRECTORY), class = open(CLASS, O_RDONLY | O_DIRECTORY);
	struct dirent **names = NULL;

	told("openat_root", closed(openat(root, FILE_THERE + 1, O_RDONLY)));
	told("openat_class", closed(openat(class, "anywarp0/ports/1/gids/0", O_RDONLY)));
	told("fstatat_root", fstatat(root, FILE_THERE + 1, &out.file, 0) == 0);
	told("faccessat_root", faccessat(root, FILE_THERE + 1, R_OK, 0) == 0);
	told("scandirat_root", scandirat(root, DIRECTORY + 1, &names, NULL, alphasort) > 2);
	told("dots", closed(open("/sys//class/./net/../infiniband/anywarp0/node_guid", O_RDONLY)));
	told("link_and_dots",
	     closed(open(CLASS "/anywarp0/device/../anywarp.00.0/numa_node", O_RDONLY)));
	(void)closed(root);
	(void)closed(class);
}

static void by_chdir(void)
{
	char here[PATH_MAX], *named;

	told("chdir", chdir(CLASS "/anywarp0") == 0);
	told("getcwd", getcwd(here, room) && !strcmp(here, DEVICE));
	named = get_current_dir_name();
	told("get_current_dir_name", named && !strcmp(named, DEVICE));
	free(named);
	told("chdir_relative", closed(open("ports/1/gids/0", O_RDONLY)));
	told("chdir_stream", fopen("node_guid", "r") != NULL);
	(void)!chdir("/sys/class");
	told("chdir_class", closed(open("infiniband/anywarp0/node_guid", O_RDONLY)));
	(void)!chdir("/");
}

static void by_names(void)
{
	char to[PATH_MAX] = "";
	char *named = realpath(CLASS "/anywarp0/device", NULL);

	told("realpath_device", named && !strcmp(named, PARENT));
	free(named);
	told("readlink_class", readlink(CLASS "/anywarp0", to, sizeof(to)) > 0 &&
				       strstr(to, "../../devices/platform/anywarp.00.0/"));
}

static int seen_files, seen_wrong;

static int on_file(const char *path, const struct stat *file, int kind, struct FTW *where)
{
	seen_files += kind == FTW_F && S_ISREG(file->st_mode);
	seen_wrong += strncmp(path, DEVICE, strlen(DEVICE)) != 0 || path[where->base - 1] != '/';
	return 0;
}

static int on_any(const char *path, const struct stat *file, int kind)
{
	(void)file;
	seen_files += kind == FTW_F;
	seen_wrong += strncmp(path, DIRECTORY, strlen(DIRECTORY)) != 0;
	return 0;
}

static void by_walk(void)
{
	char *const paths[] = { CLASS "/anywarp0/ports", NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	bool found = false;
	FTSENT *entry;

	told("nftw", nftw(DEVICE, on_file, 8, FTW_PHYS) == 0 && seen_files > 20 && !seen_wrong);
	seen_files = 0;
	told("ftw", ftw(DIRECTORY, on_any, 8) == 0 && seen_files > 0 && !seen_wrong);
	while (walk && (entry = fts_read(walk)))
		found |= entry->fts_info == FTS_F && !strcmp(entry->fts_name, "link_layer");
	told("fts", found);
	if (walk)
		fts_close(walk);
}

static void by_glob(void)
{
	glob_t paths;
	glob64_t paths64;

	told("glob", glob(CLASS "/*/ports/*/gid[s]/0", 0, NULL, &paths) == 0 &&
			     paths.gl_pathc == 1 && !strcmp(paths.gl_pathv[0], FILE_THERE));
	told("glob64", glob64(CLASS "/any*/ports", 0, NULL, &paths64) == 0 &&
			       !strcmp(paths64.gl_pathv[0], CLASS "/anywarp0/ports"));
}

/* As ls -l asks: there is no such attribute, but there is the file. */
static void by_attributes(void)
{
	struct statvfs system;
	struct statfs old;
	char value[64];

	told("getxattr",
	     getxattr(FILE_THERE, "user.none", value, sizeof(value)) < 0 && errno != ENOENT);
	told("lgetxattr",
	     lgetxattr(FILE_THERE, "user.none", value, sizeof(value)) < 0 && errno != ENOENT);
	told("listxattr", listxattr(FILE_THERE, value, sizeof(value)) >= 0 || errno != ENOENT);
	told("llistxattr", llistxattr(FILE_THERE, value, sizeof(value)) >= 0 || errno != ENOENT);
	told("statfs", statfs(FILE_THERE, &old) == 0);
	told("statvfs", statvfs(FILE_THERE, &system) == 0);
	told("pathconf", pathconf(DIRECTORY, _PC_NAME_MAX) > 0);
	told("freopen", freopen(FILE_THERE, "r", stdin) != NULL);
}

int main(void)
{
	by_relatives();
	by_chdir();
	by_names();
	by_walk();
	by_glob();
	by_attributes();
	by_open();
	by_stat();
	by_link();
	by_directory();
	by_access();
	return 0;
}
