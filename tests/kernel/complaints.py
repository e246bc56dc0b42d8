# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a kernel prints when it finds a fault of its own."""

import re

PATTERN = re.compile("|".join((
    r"\bBUG\b", r"WARNING: ", r"\bOops\b", r"Kernel panic", r"KASAN", r"UBSAN", r"unreferenced object",
    r"new suspected memory leaks", r"possible (circular|recursive|irq)", r"inconsistent lock state",
    r"INFO: (task|rcu|suspicious|trying|possible)", r"suspicious RCU", r"stall(s|ed)? (on|detected)",
    r"refcount_t: ", r"list_(add|del) corruption", r"ODEBUG: ", r"Segfault with no mm",
    r"unregister_netdevice: waiting", r"soft lockup", r"segfault at", r"Call Trace:")))
# Written to the log behind a scan that found only what kernel.leaks_in() leaves out.
LEAKS_JUDGED = "tests: each leak is a node of ib_uverbs or rdma_cm"
# Written to the log before allocations are made to fail. Where xa_insert() then runs out of memory it leaves inner nodes without an
# entry (the kernel's own fault): rdma_cm's table of ports is not empty when a namespace ends. A port that is in use for ever would be
# seen by the ids that are left.
FAULTS_MADE = "tests: allocations are made to fail"
PORT_NODES = re.compile(r"WARNING: [^\n]* cma_exit_net\+[^\n]*\n(?:(?![^\n]*(?:=====|BUG|WARNING: |Oops|KASAN))[^\n]*\n)*?"
                        r"[^\n]*Call Trace:")
# Of User Mode Linux itself: what it says at its start, and its fork(), which looks at a maple tree without RCU. And that memory is
# short is no fault, though the kernel tells with a trace where it was. And of nvmet: it runs a host's first command in
# rdma_cm's event, where the command came before the event, and destroys its listener under a lock that the command takes. lockdep
# takes the connection's id for the listener's, at whichever of the two comes second, and finds nothing more in that boot.
HARMLESS = re.compile(r"[^\n]*KernelAddressSanitizer initialized[^\n]*|"
                      rf"[^\n]*kmemleak: \d+ new suspected memory leaks[^\n]*\n(?=(?:[^\n]*\n)*?[^\n]*{LEAKS_JUDGED})|"
                      r"[^\n]*(?:vmalloc error|page allocation failure):[^\n]*\n(?:(?!=====)[^\n]*\n)*?[^\n]*Mem-Info:|"
                      r"WARNING: possible circular locking dependency detected\n(?:(?!=====)[^\n]*\n){,4}[^\n]*at: "
                      r"(?:rdma_destroy_id(?:(?!=====)[^\n]*\n){,5}[^\n]*at: nvmet_port_subsys_drop_link|"
                      r"nvmet_find_get_subsys(?:(?!=====)[^\n]*\n){,5}[^\n]*at: cma_iw_handler)(?:(?!=====)[^\n]*\n)*?Call Trace:|"
                      r"WARNING: suspicious RCU usage\n(?:(?!=====)[^\n]*\n){,3}lib/maple_tree\.c:"
                      r"(?:(?!=====)[^\n]*\n)*?[^\n]*(?:fork_handler|force_flush_all|fix_range)[^\n]*", re.S)


def in_text(text):
    """The lines that are complaints."""
    if FAULTS_MADE in text:
        text = PORT_NODES.sub("", text)
    return [line for line in HARMLESS.sub("", text).splitlines() if PATTERN.search(line)]
