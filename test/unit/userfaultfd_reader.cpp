// SPDX-License-Identifier: BSD-2-Clause
// vm/userfaultfd_reader.cpp: what is made of the kernel's messages.
#include "support/eventually.hpp"
#include "support/memory.hpp"
#include "support/real_sources.hpp"
#include "support/watching.hpp"

#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;
using Memory = regcache::test::Mapping;

namespace {

std::shared_ptr<Userfaultfd> source;

void open()
{
    source = userfaultfd_or_skip();
}

void close()
{
    source.reset();
}

bool are(const std::vector<Event> &events, std::vector<Event> expected)
{
    if (events.size() != expected.size())
        return false;
    for (std::size_t i = 0; i < events.size(); ++i)
        if (!(events[i].range == expected[i].range) || events[i].change != expected[i].change)
            return false;
    return true;
}

} // namespace

TestSuite(userfaultfd_reader, .init = open, .fini = close);

Test(userfaultfd_reader, unmapped_pages_are_gone)
{
    Memory memory(Kind::Private, 4 * page_size());
    const Range all = part_of(memory.data(), 0, 4);
    const Watching watching(*source, all);
    Told told(*source);
    memory.unmap();
    cr_expect(are(told.events(), {{all, Change::Gone}}));
}

Test(userfaultfd_reader, dropped_pages_are_going)
{
    for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
        const Memory memory(Kind::Private, 4 * page_size());
        const Watching watching(*source, part_of(memory.data(), 0, 4));
        Told told(*source);
        cr_assert(madvise(memory.data() + page_size(), page_size(), advice) == 0);
        cr_expect(are(told.events(), {{part_of(memory.data(), 1, 1), Change::Going}}));
    }
}

Test(userfaultfd_reader, moved_pages_are_gone_here_and_arrive_there)
{
    Memory memory(Kind::Private, 4 * page_size()), place(Kind::Private, 4 * page_size());
    const Range here = part_of(memory.data(), 0, 4), there = part_of(place.data(), 0, 4);
    const Watching watching(*source, here);
    Told told(*source);
    cr_assert(mremap(memory.data(), memory.size(), memory.size(), MREMAP_MAYMOVE | MREMAP_FIXED, place.data()) == place.data());
    memory.forget();
    const auto &events = told.events();
    cr_assert(events.size() >= 2);
    // The old place may be told twice: as moved, and as unmapped.
    bool has_left = false, has_arrived = false;
    for (const Event &event : events) {
        has_left = has_left || (event.change == Change::Gone && event.range == here);
        has_arrived = has_arrived || (event.change == Change::Arrived && event.range == there);
    }
    cr_expect(has_left && has_arrived);
}

Test(userfaultfd_reader, bell_rings_for_events)
{
    Memory memory(Kind::Private, page_size());
    const Watching watching(*source, part_of(memory.data(), 0, 1));
    const auto rings = source->bell().rings();
    memory.unmap();
    cr_expect(eventually([&] { return source->bell().rings() != rings; }));
}

Test(userfaultfd_reader, position_is_even_and_never_goes_back)
{
    std::uint64_t last = source->position();
    for (int i = 0; i < 500; ++i) {
        Memory memory(Kind::Private, page_size());
        const Watching watching(*source, part_of(memory.data(), 0, 1));
        memory.unmap();
        const std::uint64_t now = source->position();
        cr_assert(now % 2 == 0 && now > last);
        last = now;
    }
}

// More changes at once than one read takes.
Test(userfaultfd_reader, changes_of_many_threads_are_all_told)
{
    constexpr std::size_t kThreads = 8, kRounds = 200;
    std::vector<std::thread> threads;
    std::atomic<unsigned> unseen{0};
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < kRounds; ++i) {
                Memory memory(Kind::Private, 2 * page_size());
                const Range all = part_of(memory.data(), 0, 2);
                const Watching watching(*source, all);
                if (!watching.works())
                    continue;
                Told told(*source);
                memory.unmap();
                unseen += !told.has_moved() || !told.tells_of(all);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(unseen == 0, "%u changes went unseen", unseen.load());
}
