// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names of the port's counters, by which their files are made and answered.
#ifndef CLI_PATHS_COUNTERS_H
#define CLI_PATHS_COUNTERS_H

#include "net/stat/totals_layout.h"

#include <stddef.h>

enum paths_counted {
	PATHS_NEVER, // an adapter counts it, and TCP repairs it: 0
	PATHS_WORDS_OUT,
	PATHS_WORDS_IN,
	PATHS_FPDUS_OUT,
	PATHS_FPDUS_IN,
	PATHS_BYTES_OUT,
	PATHS_BYTES_IN,
	PATHS_MESSAGES_OUT,
	PATHS_MESSAGES_IN,
	PATHS_CRC_ERRORS,
	PATHS_TERMINATES_OUT,
	PATHS_TERMINATES_IN,
};

struct paths_counter {
	const char *path; // below the port
	enum paths_counted counted;
};

// By the standard the data counters are in units of four bytes.
static const struct paths_counter aw_paths_counters[] = {
	{ "counters/port_xmit_data", PATHS_WORDS_OUT },
	{ "counters/port_rcv_data", PATHS_WORDS_IN },
	{ "counters/port_xmit_packets", PATHS_FPDUS_OUT },
	{ "counters/port_rcv_packets", PATHS_FPDUS_IN },
	{ "counters/unicast_xmit_packets", PATHS_FPDUS_OUT },
	{ "counters/unicast_rcv_packets", PATHS_FPDUS_IN },
	{ "counters/multicast_xmit_packets", PATHS_NEVER },
	{ "counters/multicast_rcv_packets", PATHS_NEVER },
	{ "counters/port_rcv_errors", PATHS_CRC_ERRORS },
	{ "counters/port_xmit_discards", PATHS_NEVER },
	{ "counters/port_xmit_wait", PATHS_NEVER },
	{ "counters/symbol_error", PATHS_NEVER },
	{ "counters/link_error_recovery", PATHS_NEVER },
	{ "counters/link_downed", PATHS_NEVER },
	{ "counters/local_link_integrity_errors", PATHS_NEVER },
	{ "counters/excessive_buffer_overrun_errors", PATHS_NEVER },
	{ "counters/port_rcv_remote_physical_errors", PATHS_NEVER },
	{ "counters/port_rcv_switch_relay_errors", PATHS_NEVER },
	{ "counters/port_rcv_constraint_errors", PATHS_NEVER },
	{ "counters/port_xmit_constraint_errors", PATHS_NEVER },
	{ "counters/VL15_dropped", PATHS_NEVER },
	{ "hw_counters/sent_pkts", PATHS_FPDUS_OUT },
	{ "hw_counters/rcvd_pkts", PATHS_FPDUS_IN },
	{ "hw_counters/sent_bytes", PATHS_BYTES_OUT },
	{ "hw_counters/rcvd_bytes", PATHS_BYTES_IN },
	{ "hw_counters/sent_messages", PATHS_MESSAGES_OUT },
	{ "hw_counters/rcvd_messages", PATHS_MESSAGES_IN },
	{ "hw_counters/crc_errors", PATHS_CRC_ERRORS },
	{ "hw_counters/sent_terminates", PATHS_TERMINATES_OUT },
	{ "hw_counters/rcvd_terminates", PATHS_TERMINATES_IN },
};

#define PATHS_COUNTERS (sizeof(aw_paths_counters) / sizeof(aw_paths_counters[0]))

_Static_assert(PATHS_COUNTERS <= AW_TOTALS_SHOWN, "the totals have a place for each");

#endif
