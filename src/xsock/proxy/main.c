// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process: a process of its own that carries iWARP connections for programs with the preloaded
// library. It ends when no process can give it orders and all connections are over.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "xsock/base/log.h"
#include "xsock/base/request.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/control.h"
#include "xsock/proxy/door.h"
#include "xsock/proxy/farewell.h"
#include "xsock/proxy/listeners.h"
#include "xsock/proxy/loop.h"
#include "xsock/proxy/outlive.h"
#include "xsock/proxy/status.h"

#define REVIEW_MS 1000
#define DRAIN_MS 5 /* while somebody waits for a connection to drain */
#define LINGER_NS ((AW_CONNS_PATIENCE_MS + 120000) * INT64_C(1000000))

/* Nothing of the program stays with us: its pipes must end when it does. */
static void leave_program(void)
{
	int null;

	(void)close_range(AW_PROXY_CONTROL + 1, ~0u, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!getenv("ANYWARP_LOG"))
		dup2(null, STDERR_FILENO);
	close(null);
	setsid();
	if (chdir("/") != 0)
		aw_xs_log(AW_XS_LOG_WARN, "cannot leave the program's directory: %s",
			  strerror(errno));
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void run(struct aw_loop *loop)
{
	int64_t reviewed = now_ms();
	bool listening = true, draining = false;

	while (!aw_control_is_over() || aw_conns_count() || aw_farewell_count() || listening ||
	       draining) {
		aw_loop_turn(loop, draining ? DRAIN_MS : REVIEW_MS);
		draining = aw_control_review();
		if (aw_control_is_over() || now_ms() - reviewed >= REVIEW_MS) {
			listening = aw_listeners_review();
			aw_farewell_review();
			aw_status_review(false);
			reviewed = now_ms();
		}
	}
	aw_status_review(true);
	aw_door_close();
	aw_loop_turn(loop, 0);
}

int main(void)
{
	struct aw_loop loop;

	leave_program();
	aw_outlive_signals();
	raise_limit();
	if (aw_loop_init(&loop) != 0 || aw_control_init(&loop, AW_PROXY_CONTROL) != 0) {
		aw_xs_log(AW_XS_LOG_ERROR, "the proxy process cannot work: %s", strerror(errno));
		return 1;
	}
	aw_listeners_init(&loop, aw_control_catch_up);
	aw_status_init(&loop, aw_control_catch_up);
	run(&loop);
	(void)aw_xs_ep_drain_all(LINGER_NS);
	return 0;
}
