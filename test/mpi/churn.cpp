// SPDX-License-Identifier: BSD-2-Clause
// Large messages between ranks whose buffers come and go in every round: each byte is checked. Finds what a registration
// cache gets wrong; measures nothing.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <getopt.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

enum class Buffers { Kept, Freed, Mixed };

struct Options {
    Buffers buffers = Buffers::Freed;
    int rounds = 30;
    std::size_t smallest = std::size_t{64} << 10;
    std::size_t largest = std::size_t{4} << 20;
};

struct Sum {
    unsigned long long messages = 0, bytes = 0, wrong = 0;
};

// What byte `i` of the message of `rank` in `round` is: a cached registration of other pages shows another round's.
unsigned char expected(int round, int rank, std::size_t i) noexcept
{
    std::uint64_t mix = (static_cast<std::uint64_t>(round) << 40) ^ (static_cast<std::uint64_t>(rank) << 32) ^ (i / 8);
    mix *= 0x9e3779b97f4a7c15u;
    mix ^= mix >> 29;
    return static_cast<unsigned char>(mix >> (8 * (i % 8)));
}

void fill(unsigned char *buffer, std::size_t bytes, int round, int rank)
{
    for (std::size_t i = 0; i < bytes; ++i)
        buffer[i] = expected(round, rank, i);
}

void check(const unsigned char *buffer, std::size_t bytes, int round, int rank, Sum &sum)
{
    ++sum.messages;
    sum.bytes += bytes;
    for (std::size_t i = 0; i < bytes; ++i) {
        if (buffer[i] != expected(round, rank, i)) {
            if (sum.wrong++ == 0)
                std::fprintf(stderr, "churn: round %d, from rank %d, byte %zu of %zu: %02x, expected %02x\n", round, rank, i,
                             bytes, buffer[i], expected(round, rank, i));
        }
    }
}

[[noreturn]] void give_up(const char *why)
{
    std::fprintf(stderr, "churn: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

// A buffer whose memory is got and given back in one of several ways.
class Buffer {
public:
    enum class Way { Malloc, Mapped, MappedOver, Grown, Dropped };

    Buffer(std::size_t bytes, Way way) : bytes_(bytes), way_(way)
    {
        switch (way) {
        case Way::Malloc:
            start_ = std::malloc(bytes);
            break;
        case Way::Grown: // from half the size, which is used before
            start_ = std::malloc(bytes / 2 + 1);
            if (start_)
                std::memset(start_, 1, bytes / 2 + 1);
            start_ = std::realloc(start_, bytes);
            break;
        case Way::Mapped:
        case Way::MappedOver:
        case Way::Dropped:
            start_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (start_ == MAP_FAILED)
                start_ = nullptr;
        }
        if (!start_)
            give_up("no memory");
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer()
    {
        if (way_ == Way::Malloc || way_ == Way::Grown)
            std::free(start_);
        else
            munmap(start_, bytes_);
    }

    unsigned char *bytes() const noexcept { return static_cast<unsigned char *>(start_); }
    // Other pages at the same address, where that is the way: the next message goes through them.
    void renew()
    {
        if (way_ == Way::MappedOver &&
            mmap(start_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            give_up("mapping over a buffer failed");
        if (way_ == Way::Dropped && madvise(start_, bytes_, MADV_DONTNEED) != 0)
            give_up("madvise failed");
    }

private:
    std::size_t bytes_;
    Way way_;
    void *start_ = nullptr;
};

class Churn {
public:
    explicit Churn(const Options &options) : options_(options)
    {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
            sizes_.push_back(bytes);
            if (bytes + bytes / 3 + 1 <= options.largest)
                sizes_.push_back(bytes + bytes / 3 + 1);
        }
    }

    Sum run()
    {
        if (options_.buffers == Buffers::Kept) {
            std::vector<Buffer *> buffers;
            for (std::size_t i = 0; i < 2 * sizes_.size(); ++i)
                buffers.push_back(new Buffer(sizes_[i / 2], Buffer::Way::Malloc));
            for (int round = 0; round < options_.rounds; ++round)
                for (std::size_t i = 0; i < sizes_.size(); ++i)
                    ring(round, sizes_[i], *buffers[2 * i], *buffers[2 * i + 1]);
            for (Buffer *buffer : buffers)
                delete buffer;
            return sum_;
        }
        for (int round = 0; round < options_.rounds; ++round) {
            for (std::size_t i = 0; i < sizes_.size(); ++i) {
                const Buffer::Way way = way_of(round, i);
                Buffer out(sizes_[i], way), in(sizes_[i], way);
                ring(round, sizes_[i], out, in);
                out.renew();
                in.renew();
                ring(round + options_.rounds, sizes_[i], out, in);
            }
            together(round, sizes_[static_cast<std::size_t>(round) % sizes_.size()]);
        }
        return sum_;
    }

private:
    Buffer::Way way_of(int round, std::size_t i) const noexcept
    {
        if (options_.buffers == Buffers::Freed)
            return Buffer::Way::Malloc;
        return static_cast<Buffer::Way>((static_cast<std::size_t>(round) + i) % 5);
    }

    // Every rank sends to the next and receives from the one before.
    void ring(int round, std::size_t bytes, const Buffer &out, const Buffer &in)
    {
        const int next = (rank_ + 1) % ranks_, before = (rank_ + ranks_ - 1) % ranks_;
        fill(out.bytes(), bytes, round, rank_);
        std::memset(in.bytes(), 0, bytes);
        MPI_Request requests[2];
        MPI_Irecv(in.bytes(), static_cast<int>(bytes), MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out.bytes(), static_cast<int>(bytes), MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in.bytes(), bytes, round, before, sum_);
    }

    // A reduction and an exchange of everybody with everybody, in buffers of their own.
    void together(int round, std::size_t bytes)
    {
        const std::size_t count = bytes / sizeof(std::int64_t);
        const Buffer part(bytes, Buffer::Way::Malloc), whole(bytes, Buffer::Way::Malloc);
        auto *const mine = reinterpret_cast<std::int64_t *>(part.bytes());
        const auto *const total = reinterpret_cast<const std::int64_t *>(whole.bytes());
        for (std::size_t i = 0; i < count; ++i)
            mine[i] = static_cast<std::int64_t>(i) * (rank_ + 1) + round;
        MPI_Allreduce(mine, whole.bytes(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        ++sum_.messages;
        sum_.bytes += bytes;
        const std::int64_t factor = static_cast<std::int64_t>(ranks_) * (ranks_ + 1) / 2;
        for (std::size_t i = 0; i < count; ++i)
            if (total[i] != static_cast<std::int64_t>(i) * factor + static_cast<std::int64_t>(round) * ranks_ &&
                sum_.wrong++ == 0)
                std::fprintf(stderr, "churn: round %d: the sum of element %zu is wrong\n", round, i);

        const auto all = static_cast<std::size_t>(ranks_) * bytes;
        const Buffer out(all, Buffer::Way::Malloc), in(all, Buffer::Way::Malloc);
        for (int to = 0; to < ranks_; ++to)
            fill(out.bytes() + static_cast<std::size_t>(to) * bytes, bytes, round, rank_ * ranks_ + to);
        std::memset(in.bytes(), 0, all);
        MPI_Alltoall(out.bytes(), static_cast<int>(bytes), MPI_BYTE, in.bytes(), static_cast<int>(bytes), MPI_BYTE,
                     MPI_COMM_WORLD);
        for (int from = 0; from < ranks_; ++from)
            check(in.bytes() + static_cast<std::size_t>(from) * bytes, bytes, round, from * ranks_ + rank_, sum_);
    }

    const Options options_;
    int rank_ = 0, ranks_ = 1;
    std::vector<std::size_t> sizes_;
    Sum sum_;
};

[[noreturn]] void usage(int status)
{
    std::fprintf(status ? stderr : stdout,
                 "usage: churn [--kept|--freed|--mixed] [--rounds N] [--smallest BYTES] [--largest BYTES]\n"
                 "Runs under mpirun; checks every byte; exit status 1 when one is wrong.\n");
    std::exit(status);
}

Options read_options(int argc, char **argv)
{
    const option known[] = {{"kept", no_argument, nullptr, 'k'},          {"freed", no_argument, nullptr, 'f'},
                            {"mixed", no_argument, nullptr, 'm'},         {"rounds", required_argument, nullptr, 'r'},
                            {"smallest", required_argument, nullptr, 's'}, {"largest", required_argument, nullptr, 'l'},
                            {"help", no_argument, nullptr, 'h'},          {nullptr, 0, nullptr, 0}};
    Options options;
    for (int got; (got = getopt_long(argc, argv, "kfmr:s:l:h", known, nullptr)) != -1;) {
        switch (got) {
        case 'k':
            options.buffers = Buffers::Kept;
            break;
        case 'f':
            options.buffers = Buffers::Freed;
            break;
        case 'm':
            options.buffers = Buffers::Mixed;
            break;
        case 'r':
            options.rounds = std::atoi(optarg);
            break;
        case 's':
            options.smallest = std::strtoul(optarg, nullptr, 10);
            break;
        case 'l':
            options.largest = std::strtoul(optarg, nullptr, 10);
            break;
        case 'h':
            usage(0);
        default:
            usage(2);
        }
    }
    if (options.rounds < 1 || options.smallest < 1 || options.largest < options.smallest ||
        options.largest > (std::size_t{1} << 30))
        usage(2);
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options(argc, argv);
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // Open MPI keeps malloc from giving memory back, for the sake of caches that would not notice. Here it is to come and go.
    if (options.buffers == Buffers::Freed) {
        mallopt(M_MMAP_MAX, 65536);
        mallopt(M_MMAP_THRESHOLD, 32 << 10);
    }
    const Sum mine = Churn(options).run();
    unsigned long long own[3] = {mine.messages, mine.bytes, mine.wrong}, all[3] = {};
    MPI_Allreduce(own, all, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("churn: %d ranks, %llu messages, %llu bytes checked, %llu wrong\n", ranks, all[0], all[1], all[2]);
    MPI_Finalize();
    return all[2] == 0 ? 0 : 1;
}
