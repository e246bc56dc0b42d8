#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""smp.py [--counted] DIRECTORY SECONDS COMMAND...: uml.py's work with a virtual machine of several processors in place of User
Mode Linux. DIRECTORY has 'vmlinux' and 'initrd' (build-smp). The machine is emulated, for a /dev/kvm that is there need not
work; ANYWARP_ACCEL=kvm tries it. --counted: one processor, whose clock is the number of its instructions, a nanosecond each:
what is measured does not depend on what else this machine does."""

import functools
import os
import sys

import uml

PROCESSORS = int(os.environ.get("ANYWARP_PROCESSORS", "2"))
MEMORY_MB = int(os.environ.get("ANYWARP_SMP_MEMORY_MB", "2048"))
EMULATION = "tcg,thread=multi"
CPU = "max,la57=off,-arch-capabilities"
# A string instruction counts once for each step: the kernel is to copy words, not bytes. An idle machine waits in real time,
# for its files come from this one.
COUNTED = ["-accel", "tcg,thread=single", "-cpu", f"{CPU},-erms,-fsrm", "-smp", "1", "-icount", "shift=0,align=off,sleep=on"]


def share(tag, path, how):
    """A directory of this machine, for the guest to mount."""
    return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{how}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def processors():
    return ["-accel", os.environ.get("ANYWARP_ACCEL", EMULATION), "-cpu", CPU, "-smp", str(PROCESSORS)]


def command_line(directory, folder, hardware):
    return ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "pc",
            *hardware, "-m", str(MEMORY_MB),
            "-kernel", f"{directory}/vmlinux", "-initrd", f"{directory}/initrd", "-append",
            "console=ttyS0 loglevel=7 panic=-1 oops=panic nokaslr mitigations=off no_timer_check softlockup_panic=1 "
            f"exchange={folder}/exchange init={uml.HERE / 'init'}",
            "-serial", "stdio", "-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
            *share("machine", "/", ",readonly=on"), *share("exchange", f"{folder}/exchange", "")]


def main(arguments):
    counted = arguments[0] == "--counted"
    hardware = COUNTED if counted else processors()
    return uml.main(functools.partial(command_line, hardware=hardware), *arguments[counted:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
