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
option(AW_BUNDLE_ISAL "Install ISA-L beside the libraries, for machines that lack it" OFF)
set(AW_HAVE_ISAL OFF)
if(AW_ISAL)
	pkg_check_modules(ISAL IMPORTED_TARGET libisal)
	if(ISAL_FOUND)
		set(AW_HAVE_ISAL ON)
	else()
		message(STATUS "ISA-L (libisal-dev) not found: CRC32c comes from the portable table")
	endif()
endif()
# The libraries look for it in their own directory first, whether they are linked with it or load it.
if(AW_HAVE_ISAL AND AW_BUNDLE_ISAL)
	list(GET ISAL_LINK_LIBRARIES 0 isal_library)
	file(REAL_PATH "${isal_library}" isal_library)
	install(FILES "${isal_library}" DESTINATION ${CMAKE_INSTALL_LIBDIR}/anywarp RENAME libisal.so.2)
	install(FILES python/ISA-L.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

include(CheckCSourceCompiles)
include(CheckSymbolExists)
check_symbol_exists(__SSE2__ "stddef.h" AW_HAVE_SSE2)

# AW_<option>, on unless it is set; AW_HAVE_<have> is ON where the header is there as well, and is of use for this processor.
macro(aw_optional_header option have text header lack)
	option(AW_${option} "${text}" ON)
	set(AW_HAVE_${have} OFF)
	if(AW_${option})
		check_c_source_compiles("#include <${header}>
			#ifdef NVALGRIND
			#error valgrind does not run here
			#endif
			int main(void) { return 0; }" AW_${have}_HEADER)
		if(AW_${have}_HEADER)
			set(AW_HAVE_${have} ON)
		else()
			message(STATUS "<${header}> ${lack}")
		endif()
	endif()
endmacro()

aw_optional_header(USDT SDT "Static probes for perf and bpftrace where <sys/sdt.h> is installed"
	sys/sdt.h "(systemtap-sdt-dev) not found: no static probes")
aw_optional_header(LIBDW LIBDW
	"Files and lines in the reports of anywarp check where libdw's headers are installed; libdw itself is loaded at run time"
	elfutils/libdwfl.h "(libdw-dev) not found: anywarp check names functions by their symbols, without lines")
aw_optional_header(MEMCHECK MEMCHECK "Marks of anywarp check for programs under valgrind where valgrind's headers are installed"
	valgrind/memcheck.h "(valgrind) not found, or not of this processor: anywarp check marks no memory for valgrind")

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
