# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Options, compiler flags and output directories that every directory shares.

set(AW_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined' or 'thread'")
option(AW_FUZZ "Build the fuzz targets with libFuzzer (clang only)" OFF)
option(AW_WERROR "Make every compiler warning an error" OFF)

# RelWithDebInfo and Release keep assert(): a broken promise of ours must not go on to corrupt.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")

set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/static")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

include_directories("${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
add_compile_definitions(AW_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
	-Wpointer-arith -Wundef -fno-strict-aliasing)
if(AW_WERROR)
	add_compile_options(-Werror)
endif()

if(AW_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
	add_compile_definitions(AW_CHECK_HELD) # base/thread_safety.h
	# For their stacks. What users run has none, as the rest of their system: one instruction in sixteen of a message.
	add_compile_options(-fno-omit-frame-pointer)
endif()

if(AW_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
		message(FATAL_ERROR "AW_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang "
			"or use 'cmake --preset fuzz'")
	endif()
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(AW_SANITIZE)
	# A report names functions and lines, and no variables, which take a sixth of the time of a build.
	set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
	add_compile_options(-fsanitize=${AW_SANITIZE})
	add_link_options(-fsanitize=${AW_SANITIZE})
	if(AW_SANITIZE MATCHES "undefined")
		add_compile_options(-fno-sanitize-recover=undefined)
	endif()
endif()
