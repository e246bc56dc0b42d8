# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# How a C test is added. Every ctest test has one label, which names its suite.

# aw_test_parts(<name> SOURCES <file>... LIBS <target>...): what several programs share, compiled once.
function(aw_test_parts name)
	cmake_parse_arguments(T "" "" "SOURCES;LIBS" ${ARGN})
	add_library(${name} STATIC ${T_SOURCES})
	target_link_libraries(${name} PUBLIC ${T_LIBS})
endfunction()

# aw_in_own_net(<variable> <target>): the command that runs the program in a network of its own, where no other program
# takes a port.
function(aw_in_own_net variable target)
	set(${variable} "${PROJECT_SOURCE_DIR}/tests/lib/with-net" ${CMAKE_CROSSCOMPILING_EMULATOR}
		"$<TARGET_FILE:${target}>" PARENT_SCOPE)
endfunction()

# aw_resets_test(<name> <target>): QPs reset and connected again, ten thousand times, a thousand under a sanitizer. In a
# network of its own: so many
# connections in TIME_WAIT take the ports that other tests look for.
function(aw_resets_test name target)
	set(resets 10000)
	if(AW_SANITIZE)
		set(resets 1000)
	endif()
	aw_in_own_net(command ${target})
	add_test(NAME ${name} COMMAND ${command} ${resets})
	set_tests_properties(${name} PROPERTIES LABELS stress)
endfunction()

# aw_c_test(<name> LABEL <suite> SOURCES <file>... [LIBS <target>...] [ARGS <arg>...]
#           [NET]): a program in <build>/tests, run by ctest as <suite>.<name>; NET: in a network of its own.
function(aw_c_test name)
	cmake_parse_arguments(T "NET" "LABEL" "SOURCES;LIBS;ARGS" ${ARGN})
	add_executable(${T_LABEL}_${name} ${T_SOURCES})
	target_link_libraries(${T_LABEL}_${name} PRIVATE ${T_LIBS})
	set_target_properties(${T_LABEL}_${name} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
	set(command ${T_LABEL}_${name})
	if(T_NET)
		aw_in_own_net(command ${T_LABEL}_${name})
	endif()
	add_test(NAME ${T_LABEL}.${name} COMMAND ${command} ${T_ARGS})
	set_tests_properties(${T_LABEL}.${name} PROPERTIES LABELS ${T_LABEL})
	# gcc's address sanitizer knows no forced unwind: as a cancelled thread ends, it takes its own look at the
	# signal stack for a write beyond a frame that is no more.
	if(AW_SANITIZE MATCHES "address")
		set_tests_properties(${T_LABEL}.${name} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=use_sigaltstack=0")
	endif()
	if(CMAKE_CROSSCOMPILING)
		set_tests_properties(${T_LABEL}.${name} PROPERTIES ENVIRONMENT AW_TEST_EMULATED=yes SKIP_RETURN_CODE 77)
	endif()
endfunction()

# aw_not_emulated(<suite> <name> <reason>): qemu-user cannot run this test.
function(aw_not_emulated suite name reason)
	if(CMAKE_CROSSCOMPILING)
		set_target_properties(${suite}_${name} PROPERTIES
			CROSSCOMPILING_EMULATOR "${PROJECT_SOURCE_DIR}/tests/arch/cannot;${reason}")
	endif()
endfunction()

# aw_ndebug(<library>): <library>_ndebug, the same sources and needs, without assert().
function(aw_ndebug library)
	get_target_property(dir ${library} SOURCE_DIR)
	get_target_property(sources ${library} SOURCES)
	list(TRANSFORM sources PREPEND "${dir}/")
	add_library(${library}_ndebug STATIC ${sources})
	foreach(property COMPILE_DEFINITIONS C_VISIBILITY_PRESET INCLUDE_DIRECTORIES LINK_LIBRARIES
			INTERFACE_INCLUDE_DIRECTORIES INTERFACE_LINK_LIBRARIES INTERFACE_LINK_OPTIONS)
		get_target_property(value ${library} ${property})
		if(value)
			set_target_properties(${library}_ndebug PROPERTIES ${property} "${value}")
		endif()
	endforeach()
	target_compile_definitions(${library}_ndebug PRIVATE NDEBUG)
	# What only assertions read.
	target_compile_options(${library}_ndebug PRIVATE -Wno-unused -Wno-unused-parameter)
endfunction()

# aw_starts_threads(<variable> <file> [<target>...]): false where neither the test's file starts a thread nor the rooms that it tests:
# wire and core own none (tools/check-freestanding). The thread sanitizer sees nothing in a program of one thread, and takes long to.
function(aw_starts_threads variable file)
	set(${variable} TRUE PARENT_SCOPE)
	file(STRINGS "${file}" starts REGEX "pthread_create|thrd_create" LIMIT_COUNT 1)
	if(NOT starts AND "${ARGN}" MATCHES "^(aw_wire|aw_core|core_parts)$")
		set(${variable} FALSE PARENT_SCOPE)
	endif()
endfunction()

# aw_unit_test(<name> [LIBS <target>...] [SOURCES <further file>...] [OF <other>]): tests/unit/test_<name>.c,
# or test_<other>.c, a cmocka program.
function(aw_unit_test name)
	cmake_parse_arguments(T "" "OF" "SOURCES;LIBS" ${ARGN})
	if(NOT T_OF)
		set(T_OF ${name})
	endif()
	aw_starts_threads(threads "${CMAKE_CURRENT_SOURCE_DIR}/test_${T_OF}.c" ${T_LIBS})
	if(AW_SANITIZE MATCHES "thread" AND NOT threads)
		return()
	endif()
	aw_c_test(${name} LABEL unit
		SOURCES test_${T_OF}.c ${T_SOURCES}
		LIBS ${T_LIBS} PkgConfig::CMOCKA)
endfunction()
