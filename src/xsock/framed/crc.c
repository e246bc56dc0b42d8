// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by ISA-L where it is installed, else by the table. ISA-L is loaded with the first record:
// most programs that this library is preloaded into have no records.
#include "base/vector.h"
#include "xsock/framed/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libisal.so.2"

/* The type of <isa-l/crc.h>; the function does not write to data. */
typedef unsigned int crc_fn(unsigned char *data, int len, unsigned int crc);

static crc_fn *crc32_iscsi; /* NULL: ISA-L is not installed */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_isal(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	void *address = library ? dlsym(library, "crc32_iscsi") : NULL;

	memcpy(&crc32_iscsi, &address, sizeof(address)); /* ISO C forbids the cast */
}

void aw_slot_find_crc(void)
{
	pthread_once(&once, load_isal);
}

uint32_t aw_slot_crc(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, load_isal);
	if (!crc32_iscsi)
		return aw_record_crc_portable(crc, data, len);
	crc = crc32_iscsi((unsigned char *)(uintptr_t)data, (int)len, crc);
	aw_vector_clear_upper();
	return crc;
}
