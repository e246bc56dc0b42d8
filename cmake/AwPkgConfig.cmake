# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# pkg-config's files: our libraries lie in a directory that neither the linker nor the loader searches by itself.

foreach(name anywarp anywarp-sockets)
	configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
	install(FILES "${CMAKE_BINARY_DIR}/${name}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
