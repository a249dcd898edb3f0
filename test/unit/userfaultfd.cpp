// SPDX-License-Identifier: BSD-2-Clause
// vm/userfaultfd.cpp: what is watched and for how long. What it makes of events is in userfaultfd_reader.cpp, how it begins,
// forks and ends in userfaultfd_life.cpp.
#include "prov/refusals.hpp"
#include "support/memory.hpp"
#include "support/real_sources.hpp"
#include "support/watching.hpp"

#include "vm/userfaultfd_open.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;
using Memory = regcache::test::Mapping;

namespace {

std::shared_ptr<Userfaultfd> source, shared_source;

void open()
{
    source = userfaultfd_or_skip();
}

void close()
{
    source.reset();
    shared_source.reset();
}

void open_shared()
{
    open();
    source.reset();
    shared_source = userfaultfd_or_skip(true);
}

// Whether a change of the page goes unseen.
bool is_silent(const void *memory, std::size_t page)
{
    Told told(*source);
    cr_assert(madvise(part_of(memory, page, 1).address(), page_size(), MADV_DONTNEED) == 0);
    return !told.has_moved();
}

Watch answer_for(Range range)
{
    return Watching(*source, range).answer();
}

alignas(4096) char in_bss[8 * 4096];
alignas(4096) char in_data[2 * 4096] = "initialized";
alignas(4096) const char in_rodata[2 * 4096] = "constant";

} // namespace

TestSuite(userfaultfd, .init = open, .fini = close);
TestSuite(userfaultfd_shared, .init = open_shared, .fini = close);

Test(userfaultfd, watched_change_is_told_before_its_call_returns)
{
    for (int i = 0; i < 200; ++i) {
        Memory memory(Kind::Private, 4 * page_size());
        const Range all = part_of(memory.data(), 0, 4);
        const Watching watching(*source, all);
        cr_assert(watching.works());
        Told told(*source);
        memory.unmap();
        cr_assert(told.has_moved());
        cr_assert(told.tells_of(all));
    }
}

Test(userfaultfd, change_that_nobody_watches_is_not_told)
{
    Memory memory(Kind::Private, 4 * page_size()), other(Kind::Private, 4 * page_size());
    const Watching watching(*source, part_of(memory.data(), 0, 4));
    cr_expect(is_silent(other.data(), 0));
    Told told(*source);
    other.unmap();
    cr_expect(!told.has_moved());
    cr_expect(!is_silent(memory.data(), 0));
}

Test(userfaultfd, only_the_watched_pages_of_a_mapping_are_told)
{
    const Memory memory(Kind::Private, 6 * page_size());
    const Watching watching(*source, part_of(memory.data(), 2, 2));
    cr_assert(watching.works());
    for (const std::size_t page : {0u, 1u, 4u, 5u})
        cr_expect(is_silent(memory.data(), page), "page %zu", page);
    for (const std::size_t page : {2u, 3u})
        cr_expect(!is_silent(memory.data(), page), "page %zu", page);
}

Test(userfaultfd, dropping_one_of_two_that_overlap_does_not_silence_the_other)
{
    struct Case {
        std::size_t first, count;
    };
    // Kept: pages 2 to 5 of 10.
    for (const Case dropped : {Case{2, 4}, Case{0, 4}, Case{4, 4}, Case{3, 1}, Case{0, 10}, Case{2, 1}, Case{5, 5}}) {
        const Memory memory(Kind::Private, 10 * page_size());
        const Watching kept(*source, part_of(memory.data(), 2, 4));
        {
            const Watching other(*source, part_of(memory.data(), dropped.first, dropped.count));
            cr_assert(kept.works() && other.works());
        }
        for (std::size_t page = 0; page < 10; ++page)
            cr_expect(is_silent(memory.data(), page) == (page < 2 || page > 5), "page %zu, dropped %zu+%zu", page,
                      dropped.first, dropped.count);
    }
}

Test(userfaultfd, pages_are_told_as_long_as_anybody_watches_them)
{
    const Memory memory(Kind::Private, 8 * page_size());
    std::vector<std::unique_ptr<Watching>> all;
    for (int i = 0; i < 5; ++i)
        all.push_back(std::make_unique<Watching>(*source, part_of(memory.data(), 1, 6)));
    all.push_back(std::make_unique<Watching>(*source, part_of(memory.data(), 0, 2)));
    while (!all.empty()) {
        cr_expect(!is_silent(memory.data(), 1));
        all.erase(all.begin());
    }
    for (std::size_t page = 0; page < 8; ++page)
        cr_expect(is_silent(memory.data(), page));
}

Test(userfaultfd, mapping_at_the_place_of_an_unmapped_one_is_watched_anew)
{
    const Memory memory(Kind::Private, 4 * page_size());
    const Range all = part_of(memory.data(), 0, 4);
    const Watching old(*source, all);
    cr_assert(mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              memory.data());
    cr_expect(is_silent(memory.data(), 0)); // the kernel doesn't watch the new one by itself
    const Watching fresh(*source, all);
    cr_assert(fresh.works());
    cr_expect(!is_silent(memory.data(), 0));
}

Test(userfaultfd, stale_watch_that_ends_does_not_silence_the_new_one)
{
    const Memory memory(Kind::Private, 4 * page_size());
    const Range all = part_of(memory.data(), 0, 4);
    auto old = std::make_unique<Watching>(*source, all);
    cr_assert(mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              memory.data());
    const Watching fresh(*source, all);
    old.reset();
    cr_expect(!is_silent(memory.data(), 2));
}

Test(userfaultfd, moved_pages_are_watched_no_longer)
{
    Memory memory(Kind::Private, 4 * page_size());
    Memory place(Kind::Private, 4 * page_size());
    {
        const Watching watching(*source, part_of(memory.data(), 0, 4));
        cr_assert(mremap(memory.data(), memory.size(), memory.size(), MREMAP_MAYMOVE | MREMAP_FIXED, place.data()) ==
                  place.data());
        memory.forget();
    } // the next call after the move puts the new place in order
    for (std::size_t page = 0; page < 4; ++page)
        cr_expect(is_silent(place.data(), page));
}

Test(userfaultfd, pages_moved_onto_watched_ones_are_watched_where_somebody_does)
{
    Memory from(Kind::Private, 4 * page_size());
    const Memory to(Kind::Private, 4 * page_size());
    const Watching at_source(*source, part_of(from.data(), 0, 4));
    const Watching at_target(*source, part_of(to.data(), 0, 2));
    Told told(*source);
    cr_assert(mremap(from.data(), from.size(), from.size(), MREMAP_MAYMOVE | MREMAP_FIXED, to.data()) == to.data());
    cr_expect(told.tells_of(part_of(from.data(), 0, 4)));
    cr_expect(told.tells_of(part_of(to.data(), 0, 2)));
    from.forget();
    const Watching anew(*source, part_of(to.data(), 0, 2));
    cr_expect(!is_silent(to.data(), 0) && !is_silent(to.data(), 1));
    cr_expect(is_silent(to.data(), 2) && is_silent(to.data(), 3));
}

Test(userfaultfd, more_moves_than_the_queue_holds_are_survived)
{
    Memory memory(Kind::Private, page_size());
    const Memory last(Kind::Private, 4 * page_size());
    char *here = memory.data(), *there = last.data();
    const Watching watching(*source, part_of(here, 0, 1));
    memory.forget();
    for (std::uint64_t i = 0; i <= EventQueue::kSlots / 2; ++i) { // two events each
        cr_assert(mremap(here, page_size(), page_size(), MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
        std::swap(here, there);
    }
    const Memory other(Kind::Private, page_size());
    const Watching next(*source, part_of(other.data(), 0, 1));
    cr_expect(next.works());
    cr_expect(!is_silent(other.data(), 0));
    munmap(here, page_size());
}

Test(userfaultfd, memory_with_holes_is_not_mapped)
{
    Memory memory(Kind::Private, 6 * page_size());
    cr_assert(munmap(memory.data() + 2 * page_size(), page_size()) == 0);
    const auto part = [&](std::size_t first, std::size_t count) { return answer_for(part_of(memory.data(), first, count)); };
    cr_expect(part(0, 6) == Watch::NotMapped); // in the middle
    cr_expect(part(0, 3) == Watch::NotMapped); // at the end
    cr_expect(part(2, 3) == Watch::NotMapped); // at the begin
    cr_expect(part(2, 1) == Watch::NotMapped); // all of it
    cr_expect(part(0, 2) == Watch::Watched && part(3, 3) == Watch::Watched);
    for (const std::size_t page : {0u, 1u, 3u, 5u})
        cr_expect(is_silent(memory.data(), page)); // what was refused left nothing behind
}

Test(userfaultfd, range_over_several_mappings_is_watched_whole)
{
    const Memory memory(Kind::Private, 6 * page_size());
    cr_assert(mprotect(memory.data() + 2 * page_size(), 2 * page_size(), PROT_READ) == 0);
    const Watching watching(*source, part_of(memory.data(), 0, 6));
    cr_assert(watching.works());
    for (std::size_t page = 0; page < 6; ++page)
        cr_expect(!is_silent(memory.data(), page));
}

Test(userfaultfd, memory_that_can_change_without_an_event_is_not_watched)
{
    for (const Kind kind : {Kind::Shared, Kind::Memfd, Kind::SysV, Kind::FilePrivate, Kind::FileShared}) {
        const Memory memory(kind, 4 * page_size());
        cr_expect(answer_for(part_of(memory.data(), 1, 2)) == Watch::SharedKind, "%s", name_of(kind));
        Told told(*source);
        madvise(memory.data(), memory.size(), MADV_DONTNEED);
        cr_expect(!told.has_moved(), "%s", name_of(kind)); // nothing is left registered
    }
}

Test(userfaultfd, private_memory_beside_a_file_is_not_watched_together_with_it)
{
    Memory memory(Kind::Private, 4 * page_size());
    const Memory file(Kind::FilePrivate, 2 * page_size());
    cr_assert(mmap(memory.data() + 2 * page_size(), 2 * page_size(), PROT_READ, MAP_PRIVATE | MAP_FIXED, file.descriptor(), 0) !=
              MAP_FAILED);
    cr_expect(answer_for(part_of(memory.data(), 0, 4)) == Watch::SharedKind);
    cr_expect(answer_for(part_of(memory.data(), 1, 2)) == Watch::SharedKind);
    cr_expect(is_silent(memory.data(), 0) && is_silent(memory.data(), 1));
    // A refusal silences nobody else.
    const Watching watching(*source, part_of(memory.data(), 0, 2));
    cr_assert(watching.works());
    cr_expect(answer_for(part_of(memory.data(), 1, 2)) == Watch::SharedKind);
    cr_expect(!is_silent(memory.data(), 0) && !is_silent(memory.data(), 1));
}

Test(userfaultfd, programs_own_sections_are_judged_by_their_files)
{
    cr_expect(answer_for(part_of(in_bss, 2, 2)) == Watch::Watched);
    cr_expect(answer_for(part_of(in_data, 0, 1)) == Watch::SharedKind);
    cr_expect(answer_for(part_of(in_rodata, 0, 1)) == Watch::SharedKind);
}

Test(userfaultfd, stack_and_heap_are_watched)
{
    char on_stack[16];
    const Range stack = whole_pages(Range::of(on_stack, sizeof on_stack), page_size());
    cr_expect(answer_for(stack) == Watch::Watched);
    const std::unique_ptr<char[]> on_heap(new char[100'000]);
    cr_expect(answer_for(whole_pages(Range::of(on_heap.get(), 100'000), page_size())) == Watch::Watched);
}

Test(userfaultfd, special_mappings_are_not_watched)
{
    const auto vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso != 0)
        cr_expect(answer_for({vdso, vdso + page_size()}) != Watch::Watched);
    cr_expect(answer_for({page_size(), 2 * page_size()}) == Watch::NotMapped);
    const std::uintptr_t kernel = ~std::uintptr_t{0} << 40;
    cr_expect(answer_for({kernel, kernel + page_size()}) != Watch::Watched);
}

Test(userfaultfd, memory_of_a_foreign_userfaultfd_is_refused)
{
    Memory memory(Kind::Private, 4 * page_size());
    const Fd foreign = open_userfaultfd();
    uffdio_register wish{};
    wish.range = {part_of(memory.data(), 1, 2).begin, 2 * page_size()};
    wish.mode = UFFDIO_REGISTER_MODE_WP;
    cr_assert(ioctl(foreign.number(), UFFDIO_REGISTER, &wish) == 0);
    cr_expect(answer_for(part_of(memory.data(), 0, 4)) == Watch::Refused);
    cr_expect(answer_for(part_of(memory.data(), 2, 1)) == Watch::Refused);
    cr_expect(answer_for(part_of(memory.data(), 0, 1)) == Watch::Watched);
    uffdio_range pages = wish.range;
    cr_assert(ioctl(foreign.number(), UFFDIO_UNREGISTER, &pages) == 0);
    cr_expect(answer_for(part_of(memory.data(), 0, 4)) == Watch::Watched);
}

Test(userfaultfd, full_table_of_mappings_is_named)
{
    const Memory memory(Kind::Private, page_size());
    Watch answer = Watch::Watched;
    on_own_thread([&] {
        if (refuse(SYS_ioctl, static_cast<std::uint32_t>(UFFDIO_REGISTER), ENOMEM))
            answer = answer_for(part_of(memory.data(), 0, 1));
        else
            answer = Watch::TooMany;
    });
    cr_expect(answer == Watch::TooMany);
}

Test(userfaultfd, part_of_a_huge_page_is_watched_as_the_whole)
{
    try {
        Memory memory(Kind::HugeTlb, 1);
        const Watching watching(*source, part_of(memory.data(), 3, 2));
        cr_assert(watching.works());
        cr_expect(watching.range() == Range::of(memory.data(), memory.size()));
        Told told(*source);
        const Range all = watching.range();
        memory.unmap();
        cr_expect(told.tells_of(all));
    } catch (const Unavailable &reason) {
        skip(reason.what());
    }
}

Test(userfaultfd, part_of_a_transparent_huge_page_is_watched_as_it_is)
{
    try {
        const Memory memory(Kind::Thp, std::size_t{2} << 20);
        memory.fill('x');
        const Watching watching(*source, part_of(memory.data(), 3, 2));
        cr_assert(watching.works());
        cr_expect(watching.range() == part_of(memory.data(), 3, 2));
        cr_expect(!is_silent(memory.data(), 3));
        cr_expect(is_silent(memory.data(), 5));
    } catch (const Unavailable &reason) {
        skip(reason.what());
    }
}

Test(userfaultfd_shared, memory_that_may_be_written_is_watched)
{
    for (const Kind kind : {Kind::Private, Kind::Shared, Kind::Memfd, Kind::SysV, Kind::FilePrivate, Kind::FileShared}) {
        Memory memory(kind, 4 * page_size());
        const Watching watching(*shared_source, part_of(memory.data(), 0, 4));
        if (!watching.works() && (kind == Kind::FilePrivate || kind == Kind::FileShared))
            continue; // needs WP_ASYNC (6.7)
        cr_expect(watching.works(), "%s: %s", name_of(kind), describe(watching.answer()));
        Told told(*shared_source);
        cr_expect(madvise(memory.data(), memory.size(), MADV_DONTNEED) == 0);
        cr_expect(told.tells_of(part_of(memory.data(), 0, 4)), "%s", name_of(kind));
    }
}

Test(userfaultfd_shared, file_that_may_only_be_read_is_refused)
{
    const Memory file(Kind::FileShared, page_size());
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file.descriptor());
    const Fd read_only(::open(path, O_RDONLY | O_CLOEXEC));
    cr_assert(read_only);
    void *const memory = mmap(nullptr, page_size(), PROT_READ, MAP_SHARED, read_only.number(), 0);
    cr_assert(memory != MAP_FAILED);
    const Watch answer = Watching(*shared_source, part_of(memory, 0, 1)).answer();
    cr_expect(answer == Watch::Refused || answer == Watch::SharedKind, "%s", describe(answer));
    munmap(memory, page_size());
}
