// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tiled I/O: a dense two-dimensional dataset in one file, each rank a tile of it, and the tiles overlap. Both write and read
// collectively, by a view of the file. ROMIO's two phases carry the tiles to the rank that writes and back, over MPI.
#include "mpi/ranks.h"

#include "worker/clock.h"

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#define OVERLAP_PART 8 /* of a tile's edge */

struct tiles {
	MPI_File file;
	int edge;
	int first; /* the column where this rank's tile begins */
	int columns; /* of the dataset */
	uint32_t *tile;
	size_t octets;
};

static uint32_t element_at(size_t row, size_t column, uint32_t round)
{
	return (uint32_t)(row * 2654435761u + column * 40503u) ^ round;
}

static void open_file(struct tiles *tiles, const char *path)
{
	int whole[2] = { tiles->edge, tiles->columns }, part[2] = { tiles->edge, tiles->edge };
	int start[2] = { 0, tiles->first };
	MPI_Datatype view;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "romio_cb_write", "enable");
	MPI_Info_set(info, "romio_cb_read", "enable");
	if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info,
			  &tiles->file) != MPI_SUCCESS)
		wrong("the file cannot be opened");
	MPI_Info_free(&info);
	MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_UINT32_T, &view);
	MPI_Type_commit(&view);
	MPI_File_set_view(tiles->file, 0, MPI_UINT32_T, view, "native", MPI_INFO_NULL);
	MPI_Type_free(&view);
}

static void fill(struct tiles *tiles, uint32_t round)
{
	size_t edge = (size_t)tiles->edge;

	for (size_t i = 0; i < edge * edge; i++)
		tiles->tile[i] = element_at(i / edge, (size_t)tiles->first + i % edge, round);
}

static void compare(const struct tiles *tiles, uint32_t round)
{
	size_t edge = (size_t)tiles->edge;

	for (size_t i = 0; i < edge * edge; i++) {
		if (tiles->tile[i] != element_at(i / edge, (size_t)tiles->first + i % edge, round))
			wrong("a tile is not what was written");
	}
}

/* The ns of writing and reading alone. */
static uint64_t write_and_read(struct tiles *tiles, uint32_t round)
{
	int count = tiles->edge * tiles->edge;
	uint64_t began, took;

	fill(tiles, round);
	MPI_Barrier(MPI_COMM_WORLD);
	began = clock_ns();
	if (MPI_File_write_at_all(tiles->file, 0, tiles->tile, count, MPI_UINT32_T,
				  MPI_STATUS_IGNORE) != MPI_SUCCESS)
		wrong("tiles cannot be written");
	MPI_Barrier(MPI_COMM_WORLD);
	took = clock_ns() - began;
	memset(tiles->tile, 0, tiles->octets);
	MPI_Barrier(MPI_COMM_WORLD);
	began = clock_ns();
	if (MPI_File_read_at_all(tiles->file, 0, tiles->tile, count, MPI_UINT32_T,
				 MPI_STATUS_IGNORE) != MPI_SUCCESS)
		wrong("tiles cannot be read");
	MPI_Barrier(MPI_COMM_WORLD);
	took += clock_ns() - began;
	compare(tiles, round);
	return took;
}

void measure_tiles(size_t edge, double seconds, const char *path, struct json *json)
{
	struct tiles tiles = { .edge = (int)edge, .octets = edge * edge * sizeof(uint32_t) };
	uint64_t rounds, octets, ns = 0;

	tiles.columns = (int)(2 * edge - edge / OVERLAP_PART);
	tiles.first = rank == 0 ? 0 : (int)(edge - edge / OVERLAP_PART);
	tiles.tile = allocate(tiles.octets);
	open_file(&tiles, path);
	rounds = rounds_for(seconds, (double)write_and_read(&tiles, 0) / NS_PER_SECOND);
	for (uint64_t i = 0; i < rounds; i++)
		ns += write_and_read(&tiles, (uint32_t)i + 1);
	MPI_File_close(&tiles.file);
	octets = rounds * 2 * 2 * tiles.octets; /* ranks; written and read */
	json_count(json, "octets", octets);
	json_real(json, "octets_per_second", (double)octets * NS_PER_SECOND / (double)ns);
	json_count(json, "operations", rounds * 2);
	free(tiles.tile);
}
