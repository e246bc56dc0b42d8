// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The words of the reasons.
#include "xsock/pair/plain.h"

#include <stddef.h>

#define PAIR_WAIT "ANYWARP_SOCKETS_PAIR_MS (10 ms where it is not set)"
#define RUN_SO \
	"under 'anywarp sockets', in mode auto, as the same user and in the same network namespace"

const struct aw_plain_words aw_plain_words[AW_PLAIN_REASONS] = {
	[AW_PLAIN_NOT] = { "-", "it is not", NULL },
	[AW_PLAIN_OFF] = { "off",
			   "its mode is off, by a rule, by the program, or because no rule matches it",
			   "'anywarp sockets --check' prints the rules" },
	[AW_PLAIN_BEYOND] = { "beyond", "its fd is 65536 or more, or there was no memory for it",
			      NULL },
	[AW_PLAIN_OTHER_HOST] = { "other-host",
				  "the two ends are on different hosts, and auto works within one",
				  "for iWARP, run both with --rule on" },
	[AW_PLAIN_NO_LISTENER] = { "no-listener", "no server in auto is known at that address",
				   "run the server " RUN_SO
				   "; it is known once it has called accept, poll, select or epoll_ctl" },
	[AW_PLAIN_LATE] = { "late", "the server did not accept the connection within " PAIR_WAIT,
			    "if its accept is slow, give the client more time" },
	[AW_PLAIN_LATE_BEFORE] = { "late-before",
				   "the server did not accept the connections before in time, so this one did not wait",
				   "see late" },
	[AW_PLAIN_HANDSHAKE] = { "handshake", "the TCP handshake took longer than " PAIR_WAIT,
				 "give the server's listen a longer backlog, or the client more time" },
	[AW_PLAIN_SERVER_FIRST] = { "server-first",
				    "the server sent bytes or closed before it took the offer of a pair",
				    "see whether its call of accept is one that the library sees" },
	[AW_PLAIN_NO_OFFER] = { "no-offer",
				"the client did not offer a pair, or not for long enough",
				"run the client " RUN_SO "; it waits for accept for " PAIR_WAIT },
	[AW_PLAIN_OWN_LISTENER] = { "own-listener",
				    "the program connects to its own listener in its only thread",
				    NULL },
	[AW_PLAIN_FORKED] = { "forked",
			      "the process has forked since it made the socket, which its child may have",
			      NULL },
	[AW_PLAIN_VFORK] = { "vfork", "the process is the child of a vfork", NULL },
	[AW_PLAIN_FEW_FDS] = { "few-fds", "half of the process's fd numbers are in use",
			       "raise the limit of open files (ulimit -n)" },
	[AW_PLAIN_SANDBOX] = { "sandbox", "the process is in a seccomp sandbox", NULL },
	[AW_PLAIN_NO_SOCKET] = { "no-socket", "the kernel gave no AF_UNIX socket for the pair",
				 NULL },
};
