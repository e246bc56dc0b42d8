// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One rank of several that meet by files: gloo_check DIRECTORY RANK RANKS. Sums, broadcasts and barriers over Gloo's ibverbs
// transport, each result compared.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

namespace {

constexpr int ROUNDS = 50;
const int COUNTS[] = { 1, 1000, 300000 };

long rank, ranks;
unsigned long compared;
std::vector<std::unique_ptr<gloo::Algorithm>> algorithms;
std::vector<std::vector<long>> memory;

void compare(const std::vector<long> &got, long (*due)(long place, long round), long round)
{
	for (size_t i = 0; i < got.size(); i++)
		if (got[i] != due(static_cast<long>(i), round)) {
			std::fprintf(stderr, "gloo_check: rank %ld, round %ld: place %zu is wrong\n", rank, round, i);
			std::exit(1);
		}
	compared += got.size() * sizeof(long);
}

long sum_due(long place, long round)
{
	return ranks * (place + round) + ranks * (ranks - 1) / 2;
}

long broadcast_due(long place, long round)
{
	return 3 * place + round;
}

template <typename Algorithm>
void sum(const std::shared_ptr<gloo::Context> &context, int count)
{
	auto &data = memory.emplace_back(static_cast<size_t>(count));
	auto &algorithm = *algorithms.emplace_back(std::make_unique<Algorithm>(context, std::vector<long *>{ data.data() }, count));

	for (long round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < count; i++)
			data[static_cast<size_t>(i)] = i + round + rank;
		algorithm.run();
		compare(data, sum_due, round);
	}
}

void broadcast(const std::shared_ptr<gloo::Context> &context, int count, int root)
{
	auto &data = memory.emplace_back(static_cast<size_t>(count));
	auto &algorithm = *algorithms.emplace_back(std::make_unique<gloo::BroadcastOneToAll<long>>(
		context, std::vector<long *>{ data.data() }, count, root));
	auto &barrier = *algorithms.emplace_back(std::make_unique<gloo::BarrierAllToAll>(context));

	for (long round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < count; i++)
			data[static_cast<size_t>(i)] = rank == root ? broadcast_due(i, round) : -1;
		barrier.run();
		algorithm.run();
		compare(data, broadcast_due, round);
	}
}

/*
 * Returns when all ranks have what was sent: Gloo's algorithms do not wait for their last sends, and a later one ends behind them. A
 * rank stays until its peers have heard that theirs have come.
 */
void finish(const std::shared_ptr<gloo::Context> &context, gloo::rendezvous::Store &store)
{
	std::vector<std::unique_ptr<gloo::transport::Buffer>> sends, receives;
	std::vector<int> bytes(2 * static_cast<size_t>(ranks));
	int slot = context->nextSlot();

	for (int i = 0; i < ranks; i++)
		if (i != rank) {
			auto &pair = context->getPair(i);

			sends.push_back(pair->createSendBuffer(slot, &bytes[2 * static_cast<size_t>(i)], sizeof(int)));
			receives.push_back(pair->createRecvBuffer(slot, &bytes[2 * static_cast<size_t>(i) + 1], sizeof(int)));
		}
	for (auto &each : sends)
		each->send();
	for (auto &each : receives)
		each->waitRecv();
	for (auto &each : sends)
		each->waitSend();
	store.set("done " + std::to_string(rank), { 1 });
	std::vector<std::string> all;
	for (int i = 0; i < ranks; i++)
		all.push_back("done " + std::to_string(i));
	store.wait(all);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	rank = std::atol(argv[2]);
	ranks = std::atol(argv[3]);
	auto device = gloo::transport::ibverbs::CreateDevice({ "anywarp0", 1, 0 });
	gloo::rendezvous::FileStore store(argv[1]);
	auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(ranks));

	context->connectFullMesh(store, device);
	for (int count : COUNTS) {
		sum<gloo::AllreduceRing<long>>(context, count);
		sum<gloo::AllreduceRingChunked<long>>(context, count);
		sum<gloo::AllreduceHalvingDoubling<long>>(context, count);
		broadcast(context, count, static_cast<int>(ranks) - 1);
	}
	finish(context, store);
	std::printf("compared %lu octets\n", compared);
	std::fflush(stdout);
	/* Gloo's thread may still be at work on the pair whose receive it has reported: nothing is taken down. */
	std::_Exit(0);
}
