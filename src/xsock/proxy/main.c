// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp-proxy: a process of its own that has the iWARP connections of programs with the preloaded
// library. The process exits when no process can send it requests and all connections have ended.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/thread.h"
#include "xsock/base/request.h"
#include "xsock/proxy/conns.h"
#include "xsock/proxy/control.h"
#include "xsock/proxy/loop.h"
#include "xsock/proxy/status.h"

#define REVIEW_MS 1000
#define LINGER_NS ((AW_CONNS_STARTUP_MS + 120000) * INT64_C(1000000))

/*
 * Closes all that this process has inherited but the control socket: the program's pipes must end
 * when the program does.
 */
static void leave_program(void)
{
	int null;

	(void)close_range(AW_PROXY_CONTROL + 1, ~0u, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/* Where TLS is required, this process alone knows which peer was refused, and why. */
	if (!secure_getenv("ANYWARP_LOG") && !aw_setting_wants_tls())
		dup2(null, STDERR_FILENO);
	close(null);
	setsid();
	if (chdir("/") != 0)
		aw_log(AW_LOG_WARN, "cannot leave the program's directory: %s", strerror(errno));
}

/*
 * Ignores every signal that a service manager, a terminal or a timer sends to the program's process
 * group: this process has connections of programs that may have exited, and lives as long as they
 * do, as the kernel's TCP does. Signals of its own faults, SIGCHLD and SIGCONT keep the default
 * action. All signals are unblocked.
 */
static void outlive_signals(void)
{
	static const int kept[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGTRAP,
				    SIGSYS,  SIGABRT, SIGCHLD, SIGCONT };
	sigset_t none;

	/* signal() fails for SIGKILL, SIGSTOP and the C library's own signals. */
	for (int sig = 1; sig < NSIG; sig++) {
		bool is_kept = false;

		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			is_kept |= sig == kept[i];
		signal(sig, is_kept ? SIG_DFL : SIG_IGN);
	}
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void serve_until_done(void)
{
	int64_t reviewed_ns = aw_now_ns();
	bool is_due;

	while (!aw_control_is_over() || aw_conns_first()) {
		aw_loop_turn(REVIEW_MS);
		is_due = aw_now_ns() - reviewed_ns >= REVIEW_MS * INT64_C(1000000);
		if (aw_control_is_over() || is_due)
			aw_status_review(false);
		if (is_due) {
			aw_conns_review();
			reviewed_ns = aw_now_ns();
		}
	}
	aw_status_review(true);
	aw_loop_turn(0);
}

int main(void)
{
	struct ibv_device **list;
	struct rlimit limit;

	aw_log_output.reports_level = false; /* libibverbs does */
	/* The verbs library tells of wrong settings while there is the program's stderr to write to. */
	list = ibv_get_device_list(NULL);
	if (list)
		ibv_free_device_list(list);
	leave_program();
	outlive_signals();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	aw_thread_shorten_slice();
	if (aw_loop_init() != 0 || aw_control_init(AW_PROXY_CONTROL) != 0) {
		aw_log(AW_LOG_ERROR, "the proxy process cannot work: %s", strerror(errno));
		return 1;
	}
	serve_until_done();
	(void)aw_xs_ep_drain_all(LINGER_NS);
	return 0;
}
