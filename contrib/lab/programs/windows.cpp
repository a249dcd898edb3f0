// SPDX-License-Identifier: BSD-2-Clause
// MPI with buffers that are allocated and freed in every round: one-sided puts and gets, an exchange of all with all, and a
// reduction. Every element is checked. Runs under mpirun; exit status 1 when one was wrong.
//
//   windows [ROUNDS] [BYTES]
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

int rank = 0, ranks = 1;
long checked = 0, wrong = 0;

struct Free {
    void operator()(void *memory) const { std::free(memory); }
};
using Numbers = std::unique_ptr<std::int64_t[], Free>;

Numbers allocate(std::size_t count)
{
    auto *const memory = static_cast<std::int64_t *>(std::malloc(count * sizeof(std::int64_t)));
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return Numbers(memory);
}

std::int64_t value(int round, int from, int to, std::size_t at)
{
    return (static_cast<std::int64_t>(round) << 40) + (static_cast<std::int64_t>(from * ranks + to) << 32) + static_cast<std::int64_t>(at);
}

void check(const char *what, int round, std::int64_t got, std::int64_t expected)
{
    ++checked;
    if (got != expected && wrong++ == 0)
        std::fprintf(stderr, "windows: rank %d, round %d, %s: %llx, expected %llx\n", rank, round, what,
                     static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected));
}

// Everybody puts a piece into everybody's window, then reads a piece back.
void one_sided(int round, std::size_t count)
{
    const std::size_t all = count * static_cast<std::size_t>(ranks);
    const Numbers memory = allocate(all), out = allocate(all), in = allocate(all);
    for (std::size_t i = 0; i < all; ++i) {
        memory[i] = in[i] = -1;
        out[i] = value(round, rank, static_cast<int>(i / count), i % count);
    }
    MPI_Win window;
    MPI_Win_create(memory.get(), static_cast<MPI_Aint>(all * sizeof(std::int64_t)), sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    const int piece = static_cast<int>(count);
    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; ++to)
        MPI_Put(&out[static_cast<std::size_t>(to) * count], piece, MPI_INT64_T, to, static_cast<MPI_Aint>(rank) * piece, piece, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    for (int from = 0; from < ranks; ++from)
        MPI_Get(&in[static_cast<std::size_t>(from) * count], piece, MPI_INT64_T, from, static_cast<MPI_Aint>(rank) * piece, piece, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    for (std::size_t i = 0; i < all; ++i) {
        const int other = static_cast<int>(i / count);
        check("put", round, memory[i], value(round, other, rank, i % count));
        check("get", round, in[i], value(round, rank, other, i % count));
    }
    MPI_Win_free(&window);
}

void all_to_all(int round, std::size_t count)
{
    const std::size_t all = count * static_cast<std::size_t>(ranks);
    const Numbers out = allocate(all), in = allocate(all);
    for (std::size_t i = 0; i < all; ++i) {
        in[i] = -1;
        out[i] = value(round, rank, static_cast<int>(i / count), i % count);
    }
    MPI_Alltoall(out.get(), static_cast<int>(count), MPI_INT64_T, in.get(), static_cast<int>(count), MPI_INT64_T, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < all; ++i)
        check("alltoall", round, in[i], value(round, static_cast<int>(i / count), rank, i % count));
}

void reduction(int round, std::size_t count)
{
    const Numbers part = allocate(count), sum = allocate(count);
    for (std::size_t i = 0; i < count; ++i) {
        sum[i] = -1;
        part[i] = value(round, 0, rank, i);
    }
    const int root = round % ranks;
    MPI_Reduce(part.get(), sum.get(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
    if (rank != root)
        return;
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t expected = 0;
        for (int from = 0; from < ranks; ++from)
            expected += value(round, 0, from, i);
        check("reduce", round, sum[i], expected);
    }
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // Open MPI keeps malloc from giving memory back; here it is to come and go. Another malloc doesn't listen.
    mallopt(M_MMAP_MAX, 65536);
    mallopt(M_MMAP_THRESHOLD, 32 << 10);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
    const std::size_t largest = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1 << 20) / sizeof(std::int64_t);
    for (int round = 0; round < rounds; ++round) {
        const std::size_t count = largest >> (round % 3);
        one_sided(round, count);
        all_to_all(round, count);
        reduction(round, count);
    }
    long own[2] = {checked, wrong}, all[2] = {};
    MPI_Allreduce(own, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("windows: %d ranks, %d rounds, %ld elements checked, %ld wrong\n", ranks, rounds, all[0], all[1]);
    MPI_Finalize();
    return all[1] == 0 ? 0 : 1;
}
