#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Holds the table of what is not offered against the libraries: missing.py PROGRAM DOCUMENT PUBLIC SYMS...

PROGRAM (missing.c) tries each name in either persona. The table has a row for those that are refused, with the errno of
each persona, and none for the others. PUBLIC lists the functions of rdma-core's newest public headers: each is exported
(SYMS), or inline and known here, or in the table.
"""
import os
import re
import subprocess
import sys

ROW = re.compile(r"\| (?P<names>`[^|]*) \| (?P<iwarp>[^|]*) \| (?P<roce>[^|]*) \| (?P<why>[^|]+) \|$")
# Inline functions that call what a program has got, or what the exported ones below are for.
INLINE = re.compile(r"ibv_(wc_read_\w+|wr_\w+|(start|next|end)_poll|(post|poll)_(cq|recv|send|srq_recv)|req_notify_cq|"
                    r"memcpy_(to|from)_dm|cq_ex_to_cq|wc_opcode|is_qpt_supported|inc_rkey|static_providers|"
                    r"flow_label_to_udp_sport|advise_mr|(alloc|free)_dm|reg_dm_mr|(alloc|bind|dealloc)_mw|"
                    r"(alloc|dealloc)_td|alloc_parent_domain|create_(cq|qp|srq)_ex|query_device_ex)$|"
                    r"rdma_get_(local|peer)_addr$")


def answers(program, persona):
    env = dict(os.environ, ANYWARP_PERSONA=persona)
    run = subprocess.run([program], env=env, stdout=subprocess.PIPE, text=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{program} ended with {run.returncode} in the {persona} persona")
    return dict(line.split() for line in run.stdout.splitlines())


def rows(document):
    """{name: (iwarp, roce)} of all names in rows, and the rows' names."""
    answers_of, named = {}, []
    with open(document, encoding="utf-8") as lines:
        for line in lines:
            if match := ROW.match(line.rstrip("\n")):
                names = re.findall(r"`(\w+)`", match["names"])
                answers_of.update(dict.fromkeys(names, (match["iwarp"].strip(" `"), match["roce"].strip(" `"))))
                named.append(names)
    return answers_of, named


def exported(lists):
    names = set()
    for path in lists:
        with open(path, encoding="ascii") as lines:
            names.update(line.split()[1] for line in lines if not line.startswith("#"))
    return names


def main(program, document, public, *syms):
    table, named = rows(document)
    iwarp, roce = answers(program, "iwarp"), answers(program, "roce")
    wrong = []
    for name in iwarp:
        found = iwarp[name].replace("ok", "offered"), roce[name].replace("ok", "offered")
        if found == ("offered", "offered"):
            if name in table:
                wrong.append(f"{name}: is offered; take its row out of {document}")
        elif table.get(name) != found:
            wrong.append(f"{name}: the library answers {found}, the row says {table.get(name)}")
    wrong += [f"{names}: a row, but {program} tries none of them" for names in named if not iwarp.keys() & set(names)]
    there = exported(syms)
    with open(public, encoding="ascii") as lines:
        functions = [line.strip() for line in lines if not line.startswith("#")]
    wrong += [f"{name}: public, but neither exported nor in the table" for name in functions
              if not ({name, f"_{name}"} & (table.keys() | there | iwarp.keys()) or INLINE.match(name))]
    print("\n".join(wrong) or f"{len(iwarp)} names tried, {len(named)} rows, {len(functions)} public functions")
    return 1 if wrong or not named else 0


sys.exit(main(*sys.argv[1:]))
