#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of the rfc_trace tools: that no requirement of an RFC is lost, and that every kind of hole
in a table is found."""

import hashlib
import tempfile
import unittest

import lintlib
import rfc_trace
import rfc_trace_text as text
import rfc_trace_tree

RFC = """
Network Working Group                                        A. Nobody


1.  Introduction

   The key words "MUST", "MUST NOT" and "SHALL" in this document are to
   be interpreted as described in RFC 2119.

2.  Rules

   A sender MUST send.  It MUST NOT wait (e.g., for
   Section 3).  A receiver may listen, and is NOT REQUIRED to answer.

   +-----+  The octet MUST not be taken from a picture.

2.1.  Lists

   The following MUST be checked:

   o  the length.  See Section 4.

   o  the
      offset, which MUST be even.  The sum MUST be odd.

   When idle, an end:

   1.  MUST sleep;

   2.  may dream.

   Bits of a frame MUST have:

   First: Reserved.  MUST be zero.

   The last sentence on a page MUST be



Nobody                      Standards Track                     [Page 1]
\f
RFC 9999                     Nothing at all                October 2007


   read to its end.  In this case, one SHALL rest.
"""

WANTED = [
    ("2-1", "A sender MUST send."),
    ("2-2", "A sender MUST send. It MUST NOT wait (e.g., for Section 3)."),
    ("2.1-1", "The following MUST be checked: the length. See Section 4."),
    ("2.1-2", "The following MUST be checked: the offset, which MUST be even."),
    ("2.1-3", "The sum MUST be odd."),
    ("2.1-4", "When idle, an end: MUST sleep;"),
    ("2.1-5", "Bits of a frame MUST have: First: Reserved. MUST be zero."),
    ("2.1-6", "The last sentence on a page MUST be read to its end."),
    ("2.1-7", "The last sentence on a page MUST be read to its end. In this case, one SHALL rest."),
]


class Text(unittest.TestCase):
    def test_every_kind_of_requirement(self):
        found = [(r.id, r.text) for r in text.requirements("9", RFC)]
        self.assertEqual(found, [(f"9-{number}", words) for number, words in WANTED])

    def test_no_key_word_of_the_rfcs_is_lost(self):
        for number in rfc_trace.RFCS:
            found = rfc_trace.read_rfc(number)
            said = " ".join(r.text for r in found)
            self.assertEqual(len({r.id for r in found}), len(found))
            for sentence in self.sentences_with_key_words(number):
                self.assertIn(sentence, said)

    @staticmethod
    def sentences_with_key_words(number):
        for block in text.blocks_of(text.body_lines(rfc_trace.read_text(number))):
            if block.text.startswith(text.KEY_WORDS_PARAGRAPH):
                continue
            yield from (s for s in text.sentences(block.text) if text.KEY_WORD.search(s))

    def test_the_texts_are_those_published(self):
        with open(f"{rfc_trace.ROOT}/docs/rfc/text/SHA256SUMS", encoding="ascii") as file:
            sums = dict(reversed(line.split()) for line in file)
        for number in rfc_trace.RFCS:
            octets = rfc_trace.read_text(number).encode("latin-1")
            self.assertEqual(hashlib.sha256(octets).hexdigest(), sums[f"rfc{number}.txt"])


SOURCES = {
    "src/a.c": "static int f(int a)\n{\n\treturn g(a);\n}\n\nint g(int a);\n"
               "static const int table[] = { 1 };\n#define LIMIT 5\n",
    "tests/unit/test_a.c": "static void a__one(void **state)\n{\n}\n"
                           "static void a__lost(void **state)\n{\n}\n"
                           "\tcmocka_unit_test(a__one),\n",
    "tests/system/test_b.py": "def test_one(x):\n    pass\n\n\ndef helper():\n    pass\n",
    "tests/sim/main.c": "int main(void)\n{\n}\n",
}
TESTS = {"unit.a": "tests/unit", "system.b": "tests/system", "sim.fixed": "tests/sim"}


class InTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        lintlib.write_tree(folder.name, SOURCES)
        self.tree = rfc_trace_tree.Tree(folder.name, TESTS)


class References(InTree):
    def test_code(self):
        for good in ("src/a.c:f", "src/a.c:table", "src/a.c:LIMIT"):
            self.assertIsNone(self.tree.code_problem(good))
        for bad, why in (("src/b.c:f", "no file"), ("src/a.c", "names no function"),
                         ("src/a.c:g", "does not define"), ("src/a.c:h", "does not define")):
            self.assertIn(why, self.tree.code_problem(bad))

    def test_tests(self):
        for good in ("unit.a:a__one", "system.b:test_one", "sim.fixed"):
            self.assertIsNone(self.tree.test_problem(good))
        for bad, why in (("unit.c:a__one", "ctest has no"), ("unit.a:a__two", "no case"),
                         ("unit.a:a__lost", "no case"), ("unit.a", "should name a case"),
                         ("system.b:helper", "no case"), ("sim.fixed:one", "has no cases")):
            self.assertIn(why, self.tree.test_problem(bad))


GOOD = {"id": "9-2-1", "text": "A sender\nMUST send.", "binds": "sender",
        "code": ["src/a.c:f"], "test": ["unit.a:a__one"]}


class Table(InTree):
    def problems(self, *entries):
        wanted = [text.Requirement("9-2-1", "2", "A sender MUST send.")]
        return rfc_trace.check(wanted, entries, self.tree)

    def test_good_entries(self):
        self.assertEqual(self.problems(GOOD), [])
        excepted = {k: v for k, v in GOOD.items() if k not in ("code", "test")}
        excepted["exception"] = "No such thing exists here."
        self.assertEqual(self.problems(excepted), [])
        self.assertEqual(self.problems({**GOOD, **excepted}), [])

    def test_holes(self):
        without = {k: v for k, v in GOOD.items() if k not in ("code", "test")}
        for entries, why in [
                ((), "9-2-1: no entry"),
                ((GOOD, GOOD), "a second entry"),
                ((GOOD, {**GOOD, "id": "9-2-2"}), "no such requirement"),
                (({**GOOD, "text": "A sender MAY send."},), "not the RFC's"),
                (({**GOOD, "binds": "nobody"},), "binds 'nobody'"),
                (({**GOOD, "tests": []},), "unknown key"),
                ((without,), "neither"),
                (({**without, "exception": "Not needed."},), "without a reason"),
                (({**without, "code": ["src/a.c:f"]},), "code without a test"),
                (({**without, "test": ["unit.a:a__one"]},), "test without its code"),
                (({**GOOD, "code": ["src/a.c:nothing"]},), "does not define"),
                (({**GOOD, "test": ["unit.a:a__two"]},), "no case"),
                (({**GOOD, "test": ["unit.b:b__one"]},), "ctest has no"),
        ]:
            with self.subTest(why):
                self.assertTrue(any(why in p for p in self.problems(*entries)))


if __name__ == "__main__":
    unittest.main()
