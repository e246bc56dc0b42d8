# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What we need from the system. AW_HAVE_ISAL tells whether PkgConfig::ISAL may be linked, AW_HAVE_SDT whether the
# library gets static probes, AW_HAVE_SSE2 whether the processor that is built for has SSE2, AW_HAVE_LIBDW whether the reports of
# anywarp check have files and lines, AW_HAVE_MEMCHECK whether it marks memory for valgrind.
# Of libibverbs and librdmacm only the public headers are used; neither is ever linked.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
include(CheckIncludeFile)

# Compilers for riscv64 may call libatomic for an atomic of one byte.
include(CheckCSourceCompiles)
check_c_source_compiles("
	#include <stdatomic.h>
	static _Atomic _Bool flag;
	int main(void) { return atomic_exchange(&flag, 1); }" AW_HAVE_BYTE_ATOMICS)
if(NOT AW_HAVE_BYTE_ATOMICS)
	link_libraries(atomic)
endif()

option(AW_ISAL "Use ISA-L for CRC32c where it is installed" ON)
set(AW_HAVE_ISAL OFF)
if(AW_ISAL)
	pkg_check_modules(ISAL IMPORTED_TARGET libisal)
	if(ISAL_FOUND)
		set(AW_HAVE_ISAL ON)
	else()
		message(STATUS "ISA-L (libisal-dev) not found: CRC32c comes from the portable table")
	endif()
endif()

include(CheckSymbolExists)
check_symbol_exists(__SSE2__ "stddef.h" AW_HAVE_SSE2)

option(AW_USDT "Static probes for perf and bpftrace where <sys/sdt.h> is installed" ON)
set(AW_HAVE_SDT OFF)
if(AW_USDT)
	check_include_file(sys/sdt.h AW_SDT_HEADER)
	if(AW_SDT_HEADER)
		set(AW_HAVE_SDT ON)
	else()
		message(STATUS "<sys/sdt.h> (systemtap-sdt-dev) not found: no static probes")
	endif()
endif()

option(AW_LIBDW "Files and lines in the reports of anywarp check where libdw's headers are installed; libdw itself is loaded at run time" ON)
set(AW_HAVE_LIBDW OFF)
if(AW_LIBDW)
	check_include_file(elfutils/libdwfl.h AW_LIBDW_HEADER)
	if(AW_LIBDW_HEADER)
		set(AW_HAVE_LIBDW ON)
	else()
		message(STATUS "<elfutils/libdwfl.h> (libdw-dev) not found: anywarp check names functions by their symbols, without lines")
	endif()
endif()

option(AW_MEMCHECK "Marks of anywarp check for programs under valgrind where valgrind's headers are installed" ON)
set(AW_HAVE_MEMCHECK OFF)
if(AW_MEMCHECK)
	check_include_file(valgrind/memcheck.h AW_MEMCHECK_HEADER)
	if(AW_MEMCHECK_HEADER)
		set(AW_HAVE_MEMCHECK ON)
	else()
		message(STATUS "<valgrind/memcheck.h> (valgrind) not found: anywarp check marks no memory for valgrind")
	endif()
endif()

find_path(AW_VERBS_HEADERS infiniband/verbs.h)
find_path(AW_RDMACM_HEADERS rdma/rdma_cma.h)
if(NOT AW_VERBS_HEADERS OR NOT AW_RDMACM_HEADERS)
	message(FATAL_ERROR "the verbs headers are missing: install libibverbs-dev and librdmacm-dev")
endif()

if(BUILD_TESTING)
	pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
	if(NOT CMOCKA_FOUND)
		message(FATAL_ERROR "cmocka is missing: install libcmocka-dev, "
			"or configure with -DBUILD_TESTING=OFF")
	endif()
endif()
