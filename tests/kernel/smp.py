#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""smp.py DIRECTORY SECONDS COMMAND...: uml.py's work with a virtual machine of several processors in place of User Mode
Linux. DIRECTORY has 'vmlinux' and 'initrd' (build-smp). The machine is emulated, for a /dev/kvm that is there need not work;
ANYWARP_ACCEL=kvm tries it."""

import os
import sys

import uml

PROCESSORS = int(os.environ.get("ANYWARP_PROCESSORS", "2"))
MEMORY_MB = int(os.environ.get("ANYWARP_SMP_MEMORY_MB", "2048"))
EMULATION = "tcg,thread=multi"
CPU = "max,la57=off,-arch-capabilities"


def share(tag, path, how):
    """A directory of this machine, for the guest to mount."""
    return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{how}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def command_line(directory, folder):
    return ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "pc",
            "-accel", os.environ.get("ANYWARP_ACCEL", EMULATION), "-cpu", CPU, "-smp", str(PROCESSORS), "-m", str(MEMORY_MB),
            "-kernel", f"{directory}/vmlinux", "-initrd", f"{directory}/initrd", "-append",
            "console=ttyS0 loglevel=7 panic=-1 oops=panic nokaslr mitigations=off no_timer_check softlockup_panic=1 "
            f"exchange={folder}/exchange init={uml.HERE / 'init'}",
            "-serial", "stdio", "-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
            *share("machine", "/", ",readonly=on"), *share("exchange", f"{folder}/exchange", "")]


if __name__ == "__main__":
    sys.exit(uml.main(command_line, *sys.argv[1:]))
