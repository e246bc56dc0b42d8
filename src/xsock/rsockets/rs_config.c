// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files are rdma-core's. A file that is missing or holds no number has no effect.
#include "xsock/rsockets/rs_config.h"

#include <stdio.h>

#define DIRECTORY "/etc/rdma/rsocket/"
#define WAKE_UP_MAX 1000000U

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_rs_options options = {
	.sndbuf = 1U << 17,
	.rcvbuf = 1U << 17,
	.sq_size = 384,
	.rq_size = 384,
	.inline_data = 64,
	.send_timeout_ns = -1,
	.recv_timeout_ns = -1,
	.keepidle = 7200,
};
static uint32_t wake_up_ms = 5000;

uint32_t aw_rs_config_clamp(int64_t value, uint32_t least, uint32_t most)
{
	if (value < least)
		return least;
	return value > most ? most : (uint32_t)value;
}

uint32_t aw_rs_config_iomap_size(uint32_t wanted)
{
	if (wanted <= 128)
		return wanted;
	return wanted < 256 ? 128 : aw_rs_config_clamp(wanted, 256, 127 << 8) & ~255U;
}

static void read_number(const char *name, uint32_t *value, uint32_t least, uint32_t most)
{
	char path[64];
	long long number;
	FILE *file;

	snprintf(path, sizeof(path), DIRECTORY "%s", name);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%lld", &number) == 1)
		*value = aw_rs_config_clamp(number, least, most);
	fclose(file);
}

static void read_files(void)
{
	read_number("mem_default", &options.rcvbuf, AW_RS_BUFFER_MIN, AW_RS_BUFFER_MAX);
	read_number("wmem_default", &options.sndbuf, AW_RS_BUFFER_MIN, AW_RS_BUFFER_MAX);
	read_number("sqsize_default", &options.sq_size, AW_RS_QUEUE_SIZE_MIN, AW_RS_QUEUE_SIZE_MAX);
	read_number("rqsize_default", &options.rq_size, AW_RS_QUEUE_SIZE_MIN, AW_RS_QUEUE_SIZE_MAX);
	read_number("inline_default", &options.inline_data, 0, AW_RS_QUEUE_SIZE_MAX);
	read_number("iomap_size", &options.iomap_size, 0, AW_RS_QUEUE_SIZE_MAX);
	read_number("wake_up_interval", &wake_up_ms, 1, WAKE_UP_MAX);
	options.iomap_size = aw_rs_config_iomap_size(options.iomap_size);
}

const struct aw_rs_options *aw_rs_config_options(void)
{
	pthread_once(&once, read_files);
	return &options;
}

int aw_rs_config_wake_up_ms(void)
{
	pthread_once(&once, read_files);
	return (int)wake_up_ms;
}
