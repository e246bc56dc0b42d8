// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The defaults of a new rsocket, which files of one number each in /etc/rdma/rsocket may change.
// Called by the files of this directory.
#ifndef XSOCK_RSOCKETS_RS_CONFIG_H
#define XSOCK_RSOCKETS_RS_CONFIG_H

#include <stdint.h>

#include "xsock/rsockets/rs_socket.h"

#define AW_RS_QUEUE_SIZE_MAX 0xFFFEU
#define AW_RS_QUEUE_SIZE_MIN 16U
#define AW_RS_BUFFER_MIN 4096U
#define AW_RS_BUFFER_MAX (1U << 28)

/* Returns the defaults; the first call reads the files. */
const struct aw_rs_options *aw_rs_config_options(void);

/* Returns how long rpoll sleeps at most before it looks again. */
int aw_rs_config_wake_up_ms(void);

/*
 * Returns the number of iomaps that the wire's one byte can express: up to 128 exactly, then
 * multiples of 256.
 */
uint32_t aw_rs_config_iomap_size(uint32_t wanted);

uint32_t aw_rs_config_clamp(int64_t value, uint32_t least, uint32_t most);

#endif
