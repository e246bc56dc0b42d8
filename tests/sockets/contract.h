// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the rows of the sockets contract are made of. A row is one claim on how a TCP socket behaves, true with
// the kernel alone; it runs in a process of its own and dies with the first check that does not hold.
#ifndef CONTRACT_H
#define CONTRACT_H

#include "thread.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CHECK(claim) ((claim) ? (void)0 : check_failed(__FILE__, __LINE__, #claim))
#define WAIT_MS 10000 /* longer than anything takes that happens at all */

struct row {
	const char *name;
	void (*run)(void);
};
struct rows {
	const struct row *rows;
	size_t count;
};
extern const struct rows open_rows, io_rows, flag_rows, first_rows, wait_rows, epoll_rows, end_rows,
	fd_rows, process_rows, pass_rows, signal_rows, urgent_rows, option_rows, beside_rows,
	bridge_rows, call_rows, reader_rows, reset_rows, fork_rows, buffer_rows;

/* One connection over 127.0.0.1; all three are blocking. */
struct ends {
	int listener, client, server;
};

__attribute__((noreturn)) void check_failed(const char *file, int line, const char *claim);

int listener_open(struct sockaddr_in *name);
int client_open(const struct sockaddr_in *name);
/* A client that does not wait in connect, and looks at its socket when gate is readable. */
int client_open_late(const struct sockaddr_in *name, int gate);
void ends_open(struct ends *e);
/* The two ends are a pair of the kernel's, where they are to be one. */
void check_pair(int client, int server);
void set_nonblocking(int fd, bool on);

void send_all(int fd, const void *octets, size_t len);
void send_text(int fd, const char *text);
void recv_exact(int fd, void *octets, size_t len);
/* The very octets of text come next. */
void expect_text(int fd, const char *text);
/* Nothing but the end of the stream comes. */
void expect_end(int fd);
/* Waits until poll tells one of events of fd; what it told. */
short wait_for(int fd, short events);
/* Waits until so many octets can be read; more never come. */
void wait_readable_octets(int fd, int count);
/* Octets whose values follow from their offset. */
void pattern_fill(void *octets, size_t len, uint64_t offset);
void pattern_check(const void *octets, size_t len, uint64_t offset);
/* Writes pattern without blocking until nothing more is taken; how much was. */
size_t fill_up(int fd);
/* Reads so much pattern. */
void expect_pattern(int fd, size_t len);
int64_t now_ms(void);
/* Waits for a child that ends well. */
void reap(pid_t child);
/* Runs this program again: --WORD FD. without: not with what LD_PRELOAD names. Returns only in the parent. */
pid_t spawn_self(const char *word, int fd, bool without);
void exec_self(const char *word, int fd, bool without);
enum exec_way {
	BY_EXECVE,
	BY_EXECVEAT,
	BY_RAW_EXECVE, /* by syscall(2) */
	BY_RAW_EXECVEAT,
	EXEC_WAYS
};
_Noreturn void exec_self_by(const char *word, int fd, bool without, enum exec_way way);

/* What spawn_self starts. */
int role_main(const char *word, int fd);

/* A descriptor over a unix socket. */
void fd_send(int channel, int fd);
int fd_recv(int channel);

#endif
