// SPDX-License-Identifier: BSD-2-Clause
// May a source and a cache come and go while other threads map and unmap? Each start proves itself in between, each end
// leaves nothing: no thread, no descriptor, no watched memory on which somebody would wait for ever.
#include "stress/counting_lower.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"
#include "vm/choice.hpp"

#include <sys/mman.h>

#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

void *map(std::size_t bytes)
{
    void *const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        std::perror("mmap");
        std::exit(1);
    }
    return got;
}

// Maps, changes and unmaps; now and then the address of a buffer that is or was registered.
void traffic(std::uint64_t seed, std::atomic<char *> &offered, const std::atomic<bool> &is_over)
{
    Random random(seed);
    const std::size_t page = regcache::page_size();
    std::vector<std::pair<void *, std::size_t>> mine;
    while (!is_over.load()) {
        if (mine.size() < 16) {
            const std::size_t bytes = (1 + below(random, 32)) * page;
            mine.emplace_back(map(bytes), bytes);
            *static_cast<char *>(mine.back().first) = 1;
        }
        const std::size_t index = below(random, mine.size());
        madvise(mine[index].first, page, MADV_DONTNEED);
        if (one_in(random, 2)) {
            munmap(mine[index].first, mine[index].second);
            mine[index] = mine.back();
            mine.pop_back();
        }
        // What the main thread has registered is unmapped by whoever takes it.
        if (char *const theirs = offered.exchange(nullptr))
            munmap(theirs, 16 * page);
    }
    for (const auto &[address, bytes] : mine)
        munmap(address, bytes);
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options("sources", argc, argv);
    const Watchdog watchdog("sources", kLimitS / patience());
    Failures failures;
    userfaultfd_or_skip();
    const std::size_t page = regcache::page_size();
    std::atomic<bool> is_over{false};
    std::atomic<char *> offered{nullptr};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 8; ++i)
        threads.emplace_back([&, i] { traffic(options.seed + i, offered, is_over); });
    const Base before = measure_base();

    const int cycles = options.is_long ? 1000 : 100;
    for (int cycle = 0; cycle < cycles; ++cycle) {
        CountingLower lower(failures);
        try {
            Cache first({}, open_source("userfaultfd", {}), lower);
            Cache second({}, open_source("auto", {}), lower);
            failures.unless(&first.source() == &second.source(), "two sources in one process");
            for (int round = 0; round < 3; ++round) {
                char *const memory = static_cast<char *>(map(16 * page));
                Region *one = nullptr, *two = nullptr;
                failures.unless(first.acquire(memory, 16 * page, 1, Match::Anywhere, &one) == 0, "acquire fails");
                failures.unless(second.acquire(memory + page, page, 1, Match::Anywhere, &two) == 0, "acquire fails");
                if (round == 1)
                    second.flush();
                if (char *const left = offered.exchange(memory)) // unmapped at some time, or by us
                    munmap(left, 16 * page);
                first.release(one);
                second.release(two);
            }
        } catch (const std::exception &error) {
            failures.add("cycle %d: %s", cycle, error.what());
        }
        failures.unless(lower.live() == 0, "%ld registrations are left in cycle %d", lower.live(), cycle);
    }
    failures.unless(is_back_at_base(before), "threads or descriptors are left");

    is_over.store(true);
    for (std::thread &thread : threads)
        thread.join();
    if (char *const left = offered.load())
        munmap(left, 16 * page);
    std::printf("%d cycles; %s\n", cycles, text_of(measure_base()).c_str());
    return failures.status();
}
