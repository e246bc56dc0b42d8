# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What we need from the system. AW_CRC_FORMS tells which forms of CRC32c are built, AW_HAVE_SDT whether the library gets static probes, AW_HAVE_SSE2 whether the processor that is built for has SSE2, AW_HAVE_LIBDW whether the reports of
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

# Which forms of CRC32c (src/crc) this compiler can make for the processor that is built for, and the flags of their files.
set(AW_CRC_SSE42 -msse4.2 -mpclmul)
set(AW_CRC_AVX2 ${AW_CRC_SSE42} -mavx2 -mvpclmulqdq)
set(AW_CRC_AVX512 ${AW_CRC_AVX2} -mavx512f)
set(AW_CRC_ARM64 -march=armv8-a+crc+crypto)
function(aw_check_crc variable flags source)
	list(JOIN flags " " CMAKE_REQUIRED_FLAGS)
	check_c_source_compiles("${source}" ${variable})
endfunction()
aw_check_crc(AW_HAVE_CRC_X86 "${AW_CRC_AVX512}" "
	#include <immintrin.h>
	__m512i fold(__m512i v) { return _mm512_clmulepi64_epi128(v, v, 0); }
	__m256i fold_half(__m256i v) { return _mm256_clmulepi64_epi128(v, v, 0); }
	int main(void) { return (int)_mm_crc32_u64(0, 0); }")
aw_check_crc(AW_HAVE_CRC_ARM64 "${AW_CRC_ARM64}" "
	#if !defined(__aarch64__) || defined(__AARCH64EB__)
	#error other instructions, or another order of octets
	#endif
	#include <arm_acle.h>
	#include <arm_neon.h>
	poly128_t multiply(poly64_t a, poly64_t b) { return vmull_p64(a, b); }
	int main(void) { return (int)__crc32cd(0, 0); }")
if(AW_HAVE_CRC_X86)
	set(AW_CRC_FORMS x86)
elseif(AW_HAVE_CRC_ARM64)
	set(AW_CRC_FORMS arm64)
else()
	set(AW_CRC_FORMS plain)
endif()

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
