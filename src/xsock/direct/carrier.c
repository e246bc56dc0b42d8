// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The carrier's life. What it has of the program, but for its connections, is given up at once: the
// program's pipes must end when the program does.
#include "xsock/direct/carrier.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "anywarp/cm.h"
#include "xsock/ep.h"
#include "xsock/ep_impl.h"
#include "xsock/keeper/conns.h"
#include "xsock/keeper/control.h"
#include "xsock/keeper/loop.h"
#include "xsock/outlive.h"

#define TURN_MS 1000
#define DRAIN_MS 5 /* while somebody waits for a connection to drain */
#define LINGER_NS INT64_C(120000000000)
#define FDS_MAX 65536

struct cargo {
	const struct aw_direct_load *loads;
	int count, control;
};

__attribute__((no_sanitize("address"))) static _Noreturn void leave(void)
{
	syscall(SYS_exit_group, 0);
	abort();
}

/* The libraries' own files are all of the anonymous kind, but for their TCP sockets. */
static bool is_kept(const struct cargo *cargo, int dir, const char *name)
{
	char target[32] = "";
	int fd = atoi(name);

	if (fd == cargo->control || fd == dir)
		return true;
	for (int i = 0; i < cargo->count; i++) {
		const struct aw_direct_load *load = &cargo->loads[i];

		if (fd == load->far || fd == load->tcp || fd == load->stream)
			return true;
	}
	return readlinkat(dir, name, target, sizeof(target) - 1) < 0 ||
	       strncmp(target, "anon_inode:", 11) == 0;
}

static void close_others(const struct cargo *cargo)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd > STDERR_FILENO &&
		    !is_kept(cargo, dirfd(dir), entry->d_name))
			syscall(SYS_close, fd);
	}
	if (dir)
		closedir(dir);
}

static void leave_program(const struct cargo *cargo)
{
	int null;

	close_others(cargo);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++) {
		if (fd != STDERR_FILENO || !getenv("ANYWARP_LOG"))
			syscall(SYS_dup3, null, fd, 0);
	}
	if (null > STDERR_FILENO)
		close(null);
	setsid();
	if (chdir("/") != 0)
		errno = 0; /* the program's directory stays in use */
	prctl(PR_SET_NAME, "anywarp-carrier");
}

static int take(const struct cargo *cargo)
{
	struct rdma_cm_id **ids =
		calloc((size_t)cargo->count * AW_XS_EP_IDS, sizeof(struct rdma_cm_id *));
	int (*take_ids)(struct rdma_cm_id *const *, int) =
		(int (*)(struct rdma_cm_id *const *, int))aw_xs_cm_extension("anywarp_fork_take");
	int count = 0, err = 0;

	if (!ids || !take_ids)
		return ENOMEM;
	for (int i = 0; i < cargo->count; i++)
		count += aw_xs_ep_ids(cargo->loads[i].ep, ids + count);
	if (take_ids(ids, count) != 0)
		err = errno;
	free(ids);
	for (int i = 0; i < cargo->count; i++)
		aw_xs_ep_taken(cargo->loads[i].ep);
	return err;
}

static int adopt(struct aw_loop *loop, const struct aw_direct_load *load)
{
	struct aw_conn conn = { .ino = load->ino,
				.pid = load->pid,
				.fd = load->fd,
				.mode = load->mode,
				.kept = load->kept,
				.remote = load->remote };
	struct aw_bridge_start start = { .far = load->far,
					 .tcp = load->tcp,
					 .ino = load->ino,
					 .line = aw_line_of_ep(load->ep),
					 .linger = load->linger };

	if (!start.line)
		return ENOMEM;
	return aw_conns_adopt(loop, &conn, &start);
}

/* It was closed, and lingers on here. */
static int see_off(struct aw_xs_ep *ep)
{
	aw_xs_service_leave(ep);
	aw_xs_service_linger(ep);
	return 0;
}

static int begin(const struct cargo *cargo, struct aw_loop *loop)
{
	int err = aw_loop_init(loop);

	if (!err)
		err = aw_control_init(loop, cargo->control, true);
	aw_conns_report_to(cargo->control);
	for (int i = 0; i < cargo->count && !err; i++) {
		const struct aw_direct_load *load = &cargo->loads[i];

		err = load->far < 0 ? see_off(load->ep) : adopt(loop, load);
	}
	return err;
}

/* Who orders us is answered, or hears that we are gone, before what lingers takes its time. */
static void sign_off(struct aw_loop *loop, int control)
{
	shutdown(control, SHUT_RD);
	aw_loop_turn(loop, 0);
	close(control);
}

__attribute__((no_sanitize("address"))) _Noreturn void aw_carrier_run(
	const struct aw_direct_load *loads, int count, int control)
{
	struct cargo cargo = { loads, count, control };
	struct aw_loop loop;
	bool draining = false;
	int err;

	aw_outlive_signals();
	err = take(&cargo);
	leave_program(&cargo); /* after take, which closes what is the parent's */
	if (!err)
		err = begin(&cargo, &loop);
	if (send(control, &err, sizeof(err), MSG_NOSIGNAL) < 0 || err)
		leave();
	while (aw_conns_count() || draining) {
		aw_loop_turn(&loop, draining ? DRAIN_MS : TURN_MS);
		draining = aw_control_review();
	}
	sign_off(&loop, control);
	(void)aw_xs_ep_drain_all(LINGER_NS);
	leave();
}
