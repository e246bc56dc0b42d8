// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The diverted functions: the linker's --wrap turns a call of f into one of __wrap_f, and
// __real_f into the function itself. What libc calls of its own accord is not diverted.
#include "inject.h"

#include <errno.h>
#include <execinfo.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Buffers of a pool that keeps some: how many are out at the end is chance. */
#define POOLED_OCTETS (256u << 10)

struct inject *inject;

void inject_init(void)
{
	inject = mmap(NULL, sizeof(*inject), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (inject == MAP_FAILED)
		abort();
}

void inject_arm(enum inject_kind kind, uint32_t first, uint32_t count)
{
	inject->kind = kind;
	inject->first = first;
	inject->count = count;
	atomic_store(&inject->calls, 0);
	atomic_store(&inject->failures, 0);
	atomic_store(&inject->armed, true);
}

void inject_disarm(void)
{
	atomic_store(&inject->armed, false);
}

static struct inject_site *site_of(void *caller)
{
	for (unsigned int i = 0; i < SITES_MAX; i++) {
		struct inject_site *site = &inject->site[i];
		void *none = NULL;

		if (atomic_load(&site->caller) == caller ||
		    atomic_compare_exchange_strong(&site->caller, &none, caller) || none == caller)
			return site;
	}
	abort();
}

/* Is this the call that is to fail? */
static bool fails(enum inject_kind kind, void *caller)
{
	struct inject_site *site;
	uint32_t call;

	if (!inject || !atomic_load(&inject->armed) || kind != inject->kind)
		return false;
	site = site_of(caller);
	call = atomic_fetch_add(&inject->calls, 1) + 1;
	atomic_fetch_add(&site->calls, 1);
	if (call < inject->first || call >= inject->first + inject->count)
		return false;
	atomic_fetch_add(&site->failures, 1);
	atomic_fetch_add(&inject->failures, 1);
	return true;
}

unsigned int inject_sites(void)
{
	unsigned int n = 0;

	while (n < SITES_MAX && inject->site[n].caller)
		n++;
	return n;
}

unsigned int inject_untried(void)
{
	unsigned int untried = 0;

	for (unsigned int i = 0; i < inject_sites(); i++) {
		void *caller = inject->site[i].caller;

		if (inject->site[i].failures)
			continue;
		untried++;
		printf("never failed: ");
		fflush(stdout);
		backtrace_symbols_fd(&caller, 1, 1);
	}
	return untried;
}

#define FAILS(kind) fails(kind, __builtin_return_address(0))

static void *count(void *p, int by)
{
	if (p && inject && malloc_usable_size(p) < POOLED_OCTETS)
		atomic_fetch_add(&inject->live, by);
	return p;
}

/* Each takes the name that the linker gives it. */
void *__real_malloc(size_t octets);
void *__wrap_malloc(size_t octets);
void *__wrap_malloc(size_t octets)
{
	if (FAILS(INJECT_MEMORY)) {
		errno = ENOMEM;
		return NULL;
	}
	return count(__real_malloc(octets), 1);
}

void *__real_calloc(size_t n, size_t octets);
void *__wrap_calloc(size_t n, size_t octets);
void *__wrap_calloc(size_t n, size_t octets)
{
	if (FAILS(INJECT_MEMORY)) {
		errno = ENOMEM;
		return NULL;
	}
	return count(__real_calloc(n, octets), 1);
}

void *__real_realloc(void *p, size_t octets);
void *__wrap_realloc(void *p, size_t octets);
void *__wrap_realloc(void *p, size_t octets)
{
	if (FAILS(INJECT_MEMORY)) {
		errno = ENOMEM;
		return NULL;
	}
	count(p, -1);
	return count(__real_realloc(p, octets), 1);
}

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_socket(family, type, protocol);
}

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_accept4(fd, addr, len, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_epoll_create1(flags);
}

int __real_eventfd(unsigned int value, int flags);
int __wrap_eventfd(unsigned int value, int flags);
int __wrap_eventfd(unsigned int value, int flags)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_eventfd(value, flags);
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_timerfd_create(clock, flags);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = (mode_t)va_arg(args, int);
	va_end(args);
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_open(path, flags, mode);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return NULL;
	}
	return __real_fopen(path, mode);
}

int __real_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list)
{
	if (FAILS(INJECT_FD)) {
		errno = EMFILE;
		return -1;
	}
	return __real_getifaddrs(list);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return FAILS(INJECT_SYSTEM) ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && FAILS(INJECT_SYSTEM)) {
		errno = ENOSPC;
		return -1;
	}
	return __real_epoll_ctl(epfd, op, fd, event);
}

int __real_getentropy(void *octets, size_t len);
int __wrap_getentropy(void *octets, size_t len);
int __wrap_getentropy(void *octets, size_t len)
{
	if (FAILS(INJECT_SYSTEM)) {
		errno = EIO;
		return -1;
	}
	return __real_getentropy(octets, len);
}

ssize_t __real_getrandom(void *octets, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *octets, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *octets, size_t len, unsigned int flags)
{
	if (FAILS(INJECT_SYSTEM)) {
		errno = EIO;
		return -1;
	}
	return __real_getrandom(octets, len, flags);
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	count(p, -1);
	__real_free(p);
}
