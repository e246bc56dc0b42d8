# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The driver's tests: one ctest test for each Python file. Nothing of them is built with a sanitizer.
if(AW_SANITIZE)
	return()
endif()

if(NOT AW_PYTEST)
	message(STATUS "pytest-3 (python3-pytest) not found: no tests of the bench driver")
	return()
endif()

file(GLOB driver_tests RELATIVE "${CMAKE_CURRENT_LIST_DIR}" CONFIGURE_DEPENDS
	"${CMAKE_CURRENT_LIST_DIR}/test_driver_*.py")
foreach(file ${driver_tests})
	string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name "${file}")
	add_test(NAME bench.${name}
		COMMAND ${AW_PYTEST_RUN} "${CMAKE_CURRENT_LIST_DIR}/${file}")
	set(cost 0)
	if(name MATCHES "^driver_(run|continue|study_programs)$") # of the whole suite's last tests: it would run alone at the end
		set(cost 60)
	endif()
	set_tests_properties(bench.${name} PROPERTIES LABELS system COST ${cost}
		ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;ANYWARP_BUILD=${CMAKE_BINARY_DIR}")
endforeach()
