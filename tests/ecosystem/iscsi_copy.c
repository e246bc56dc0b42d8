// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes a file to an iSCSI disk, or compares the disk with it: iscsi_copy write|compare FILE URL NAME,
// where NAME is the initiator's. Built by test_iser.py with Debian's libiscsi.
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK = 512,
	CHUNK = 256 * 1024
};

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "iscsi_copy: %s: %s\n", what, why);
	return 1;
}

static bool write_chunk(struct iscsi_context *iscsi, int lun, uint64_t at, uint8_t *octets)
{
	struct scsi_task *task =
		iscsi_write16_sync(iscsi, lun, at / BLOCK, octets, CHUNK, BLOCK, 0, 0, 0, 0, 0);
	bool good = task && task->status == SCSI_STATUS_GOOD;

	if (task)
		scsi_free_scsi_task(task);
	return good;
}

static bool is_chunk(struct iscsi_context *iscsi, int lun, uint64_t at, const uint8_t *octets)
{
	struct scsi_task *task =
		iscsi_read16_sync(iscsi, lun, at / BLOCK, CHUNK, BLOCK, 0, 0, 0, 0, 0);
	bool same = task && task->status == SCSI_STATUS_GOOD && task->datain.size == CHUNK &&
		    !memcmp(task->datain.data, octets, CHUNK);

	if (task)
		scsi_free_scsi_task(task);
	return same;
}

static int carry(struct iscsi_context *iscsi, int lun, FILE *file, bool writes)
{
	static uint8_t octets[CHUNK];
	uint64_t at = 0;

	for (; fread(octets, 1, CHUNK, file) == CHUNK; at += CHUNK) {
		bool good = writes ? write_chunk(iscsi, lun, at, octets)
				   : is_chunk(iscsi, lun, at, octets);

		if (!good) {
			fprintf(stderr, "iscsi_copy: at octet %llu: %s\n", (unsigned long long)at,
				iscsi_get_error(iscsi));
			return 1;
		}
	}
	printf("%llu octets\n", (unsigned long long)at);
	return 0;
}

int main(int argc, char **argv)
{
	struct iscsi_context *iscsi;
	struct iscsi_url *url;
	FILE *file;
	int status;

	if (argc != 5)
		return fail("usage", "iscsi_copy write|compare FILE URL NAME");
	file = fopen(argv[2], "rb");
	iscsi = iscsi_create_context(argv[4]);
	url = iscsi ? iscsi_parse_full_url(iscsi, argv[3]) : NULL;
	if (!file || !url)
		return fail("cannot use", file ? argv[3] : argv[2]);
	iscsi_set_targetname(iscsi, url->target);
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	if (iscsi_full_connect_sync(iscsi, url->portal, url->lun) != 0)
		return fail(argv[3], iscsi_get_error(iscsi));
	status = carry(iscsi, url->lun, file, !strcmp(argv[1], "write"));
	iscsi_logout_sync(iscsi);
	iscsi_destroy_url(url);
	iscsi_destroy_context(iscsi);
	fclose(file);
	return status;
}
