# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""From the text of an RFC to its requirements: every sentence that holds MUST, REQUIRED or SHALL
(also with NOT) in capitals, and every item of a list that such a sentence leads in. Page breaks
and line ends go; the paragraph that explains the key words and pictures hold no requirement."""

import re
from dataclasses import dataclass

KEY_WORD = re.compile(r"\b(MUST|SHALL|(?<!NOT )REQUIRED)\b")
KEY_WORDS_PARAGRAPH = 'The key words "MUST"'
FOOTER = re.compile(r"^\S.*\[Page \d+\]$")
PAGE_HEADER = re.compile(r"^RFC \d+ .*\d{4}$")
HEADING = re.compile(r"^(?:Appendix )?(\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[A-Z](?=[.:]))[.:]?\s+\S")
UNNUMBERED = re.compile(r"^[A-Z][\w']+( [\w']+)*$")
PICTURE = re.compile(r"[+|][-=~+]|[-=]{4}|\|.*\||^\s*//|^\s*\|")
MARKER = re.compile(r"^(\s*)([*o-]|\(?\d{1,2}[a-z]?[.):]|\(?[a-z][.)]|\d(?=\s\s))\s+(?=\S)")
LABEL = re.compile(r"[A-Z][\w ()]{0,40}: ")
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?=[(\"'\[]?[A-Z0-9])")
NO_SENTENCE_END = re.compile(r"\b(e\.g|i\.e|et al|vs|Fig|cf|etc|No)\.$")
FRAGMENT = re.compile(r"MUST|SHALL|[a-z]")
CONDITION = re.compile(r"(Additionally, )?(If|On|When|For|on) ")
# A sentence that begins so says nothing without the one before it.
LEANS_BACK = re.compile(r"(It|They|This|These|If not,|If this occurs,|In (this|such a) case,) ?")


@dataclass
class Block:
    """A paragraph, the first paragraph of a list item, or a heading (then section is set)."""
    indent: int
    text: str = ""
    item: bool = False
    section: str = ""
    picture: bool = False


@dataclass
class Lead:
    """A sentence that ends with a colon and the list behind it."""
    text: str
    binds: bool  # it holds a key word, so that each item is a requirement
    list_indent: int = -1  # not known before the first item


@dataclass
class Requirement:
    id: str
    section: str
    text: str


def body_lines(raw):
    """The lines without page furniture; a paragraph that a page break cuts is whole again."""
    lines = []
    for page in raw.split("\f"):
        rest = [line.rstrip() for line in page.splitlines() if not FOOTER.match(line.rstrip())]
        while rest and (not rest[0] or PAGE_HEADER.match(rest[0])):
            rest.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        if lines and rest and not goes_on(lines[-1], rest[0]):
            lines.append("")
        lines += rest
    return lines


def text_indent(line):
    """Where the words of a line begin: behind its list marker, if it has one."""
    marker = MARKER.match(line)
    return marker.end() if marker else len(line) - len(line.lstrip())


def goes_on(before, after):
    """True when a page break between the two lines stands inside a paragraph."""
    if not before.startswith(" ") or MARKER.match(after) or before[-1] in ".:!?|+":
        return False
    return after.startswith(" ") and text_indent(after) == text_indent(before)


def blocks_of(lines):
    """Cuts lines into blocks at blank lines, list markers and headings."""
    blocks, current = [], None
    for line in lines:
        heading = HEADING.match(line) or UNNUMBERED.match(line)
        marker = MARKER.match(line)
        if not line or heading:
            current = None
        if heading:
            section = heading[1] if heading.re is HEADING else line
            blocks.append(Block(0, line.strip(), section=section))
        elif line and (current is None or marker):
            current = Block(text_indent(line), line[marker.end():] if marker else line.strip(),
                            item=bool(marker), picture=bool(PICTURE.search(line)))
            blocks.append(current)
        elif line:
            current.text += " " + line.strip()
            current.picture |= bool(PICTURE.search(line))
    return blocks


def sentences(text):
    """A paragraph's sentences; one that begins with a bare MUST stays with the one before."""
    text = re.sub(r"\s+", " ", text).strip()
    parts, start = [], 0
    for end in SENTENCE_END.finditer(text):
        part = text[start:end.end()].strip()
        goes_on_with = text[end.end():]
        if not NO_SENTENCE_END.search(part) and not goes_on_with.startswith("MUST "):
            parts.append(part)
            start = end.end()
    return parts + [text[start:]] if text[start:] else parts


def with_context(said, i):
    """The i-th sentence, behind those that it leans on."""
    text = said[i]
    while i > 0 and LEANS_BACK.match(said[i]):
        i -= 1
        text = f"{said[i]} {text}"
    return text


class Walker:
    """Goes through the blocks of one RFC and collects its requirements."""

    def __init__(self, rfc):
        self.rfc, self.section, self.found, self.count = rfc, "0", [], {}
        self.leads = []

    def add(self, text):
        number = self.count[self.section] = self.count.get(self.section, 0) + 1
        self.found.append(Requirement(f"{self.rfc}-{self.section}-{number}", self.section, text))

    def drop_pending(self):
        """The last lead turned out to lead no list in: it stands for itself."""
        if self.leads and self.leads[-1].list_indent < 0:
            lead = self.leads.pop()
            if lead.binds:
                self.add(lead.text)

    def take(self, block):
        if block.section:
            self.drop_pending()
            self.section, self.leads = block.section, []
        elif block.picture or block.text.startswith(KEY_WORDS_PARAGRAPH):
            self.drop_pending()
            self.leads = []
        elif block.item or self.is_labelled_item(block):
            self.take_item(block)
        elif len(block.text.split()) > 3 or KEY_WORD.search(block.text):
            self.drop_pending()
            self.leave_lists(block.indent)
            self.take_sentences(sentences(block.text), block, 0)

    def is_labelled_item(self, block):
        """'Name: value' behind a sentence with a key word is a list without markers."""
        return bool(self.leads) and self.leads[-1].binds and bool(LABEL.match(block.text)) \
            and self.leads[-1].list_indent in (-1, block.indent)

    def leave_lists(self, indent):
        while self.leads and self.leads[-1].list_indent > indent:
            self.leads.pop()

    def take_item(self, block):
        if self.leads and self.leads[-1].list_indent < 0:
            self.leads[-1].list_indent = block.indent
        self.leave_lists(block.indent)
        said = sentences(block.text)
        lead = self.leads[-1] if self.leads else None
        first = 0
        if lead and lead.binds:
            plain = [s for s in said[1:] if not KEY_WORD.search(s)]
            self.add(" ".join([lead.text, said[0], *plain]))
            first = 1
        elif lead and KEY_WORD.search(said[0]) and \
                (FRAGMENT.match(said[0]) or CONDITION.match(lead.text)):
            self.add(f"{lead.text} {said[0]}")
            first = 1
        self.take_sentences(said, block, first)

    def take_sentences(self, said, block, first):
        leads_in = said[-1].endswith(":") and len(said) > first
        for i in range(first, len(said) - leads_in):
            if KEY_WORD.search(said[i]):
                self.add(with_context(said, i))
        if leads_in:
            self.leads.append(Lead(with_context(said, len(said) - 1),
                                   bool(KEY_WORD.search(said[-1]))))


def requirements(rfc, raw):
    """Every requirement of the RFC of that number, in its order; ids are <rfc>-<section>-<n>."""
    walker = Walker(rfc)
    for block in blocks_of(body_lines(raw)):
        walker.take(block)
    walker.drop_pending()
    return walker.found
