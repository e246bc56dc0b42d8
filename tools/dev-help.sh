# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
dev_help() {
	cat <<'HELP'
usage: ./dev COMMAND [ARGUMENTS]

  demo                     run Debian's own RDMA programs over anywarp and print one table
  test [FILTERS]           build all presets and run their suites, with totals at the end: 30 to 40
                           minutes on two processors
                             --only LABEL    one suite: unit prop sim fuzz verbs cm faults abi check
                                             system hostile stress; --unit, --prop ... are short for it
                             --preset NAME   one build: release asan tsan fuzz
                             -R REGEX        only the tests whose name matches
                           The suites below run only when they are asked for:
                             --interop       against Linux's siw, under User Mode Linux, whose kernel
                                             is built the first time
                             --kernel        the kernel module under User Mode Linux: by itself, against
                                             siw and against the libraries
                             --kernel --full  the same under KASAN, with several processors, the kernel's
                                             own RDMA users, builds for Debian's kernels and by DKMS
                             --ecosystem     other people's RDMA programs in both personas, and the
                                             sockets programs that install much
                             --distro NAME   in another Debian (trixie), made by debootstrap in
                                             build/distro; by root
                             --package       what 'package' makes, installed, used and purged in a fresh
                                             Debian 12 and 13; by root
                             --arch          unit, prop and sim tests of arm64, armhf, i386, riscv64 and
                                             s390x under qemu-user, and their programs against this
                                             machine's; --arch=NAME,... some of them
  build [PRESET]           build into build/PRESET: release (default) debug asan tsan fuzz
  build MACHINE            for arm64 armhf i386 riscv64 s390x, by Debian's cross compilers
  build kernel             build what 'test --interop' and 'test --kernel' boot and load, which they build otherwise
  kmod [KDIR]              build anywarp.ko in build/kmod, for the running kernel or for the one whose
                           build directory is KDIR
  package                  Debian packages of the work tree in build/package: the command, its libraries, the
                           headers, the kernel module's sources for DKMS
  package wheel            a wheel of the command and the libraries for pip, and its sdist, in build/package
  release [MACHINE ...]    for amd64 and arm64 an archive, a wheel and Debian packages that need glibc 2.35 alone, with the
                           sources, an SBOM and the sums, in build/dist; in Debian 12; the same sources make the
                           same bytes
  lint [--fix]             format, include arrows, locks, freestanding, size, tags, words, paths, licence, version
  rfc [--quiet] [RFC ...]  every MUST of the RFCs, the code that keeps it and the test; fails on a hole
  fuzz [TARGET] [SECONDS]  fuzz one target, or each in turn (default 60 seconds)
  fuzz --long [TARGET] [MINUTES]  fuzz for CPU minutes (default 30), renew the corpora, print the coverage
  bench [ARGUMENTS]        measure anywarp beside raw TCP, libfabric and UCX; a table, a page with
                           plots and results.json, in build/bench-results unless --out says
                           otherwise. The arguments are those of 'anywarp help bench':
                             --short, --full, --only NAME, --rounds N, --out DIR
  bench --apps [ARGUMENTS]  well-known programs, over TCP and over iWARP: an hour at most, with --short 10 minutes;
                           the results are in build/bench-apps
  bench --kernel [ARGUMENTS]  the kernel module beside TCP and siw, in one boot under User Mode Linux: tables.
                             --vm in front: Debian's kernel in an emulated machine that counts instructions.
                             --rounds N, --seconds N, --only NAME, --kind NAME, --mtu N
  bench --kernel --apps [ARGUMENTS]  NFS and NVMe over Fabrics on the module beside TCP and siw; --vm as above, behind --apps
  help [COMMAND]           this text, or a command's part of it, as 'COMMAND --help' prints

Every command installs the Debian packages it needs when they are missing and it may
(root, or sudo without a password); otherwise it names them and stops with status 2.
HELP
}

[ $# -le 1 ] || refuse help "$2"
if [ $# -eq 0 ]; then
	dev_help
	exit
fi
pick help command "$1" $commands
dev_help | awk -v name="$1" '
	/^  [a-z]/ { shown = $1 == name; if (shown && !told++) print "usage: ./dev " name " ...\n" }
	/^[^ ]|^$/ { shown = 0 }
	shown'
