# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The kernel module's sources for DKMS: cmake --install BUILD --component kmod, and only then. DKMS looks for them
# in /usr/src whatever the prefix is.

if(EXISTS "${PROJECT_SOURCE_DIR}/src/kmod/Kbuild")
	set(dkms_dir "/usr/src/anywarp-${PROJECT_VERSION}")
	configure_file(cmake/dkms.conf.in dkms.conf @ONLY)
	install(FILES "${CMAKE_BINARY_DIR}/dkms.conf" LICENSE DESTINATION "${dkms_dir}" COMPONENT kmod EXCLUDE_FROM_ALL)
	install(DIRECTORY src/wire src/core src/kmod DESTINATION "${dkms_dir}/src" COMPONENT kmod EXCLUDE_FROM_ALL
		FILES_MATCHING PATTERN "*.h" PATTERN "*.c" PATTERN "Kbuild" PATTERN "*.mod.c" EXCLUDE)
endif()
