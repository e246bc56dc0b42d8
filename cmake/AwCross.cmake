# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Toolchain file: another machine, AW_ARCH in Debian's words, by Debian's cross compiler, with the packages that
# tests/arch/build-sysroot has unpacked in AW_SYSROOT. Tests run under qemu-user. amd64 is for './dev release', which builds for another
# release's C library.

set(triplet_amd64 x86_64-linux-gnu)
set(triplet_arm64 aarch64-linux-gnu)
set(triplet_armhf arm-linux-gnueabihf)
set(triplet_i386 i386-linux-gnu)
set(triplet_riscv64 riscv64-linux-gnu)
set(triplet_s390x s390x-linux-gnu)
set(machine_amd64 x86_64)
set(machine_arm64 aarch64)
set(machine_armhf arm)
set(machine_i386 i386)
set(machine_riscv64 riscv64)
set(machine_s390x s390x)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AW_ARCH AW_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${machine_${AW_ARCH}})
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet_${AW_ARCH}})
if(NOT AW_SYSROOT)
	set(AW_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arch/${AW_ARCH}/sysroot")
endif()
get_filename_component(CMAKE_SYSROOT "${AW_SYSROOT}" ABSOLUTE)

# Debian's compiler for i386 bears the name of the processor that it is for.
string(REPLACE i386 i686 compiler ${triplet_${AW_ARCH}})
set(CMAKE_C_COMPILER ${compiler}-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-${machine_${AW_ARCH}};-L;${CMAKE_SYSROOT}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/${triplet_${AW_ARCH}}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
