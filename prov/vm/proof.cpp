// SPDX-License-Identifier: BSD-2-Clause
// The changes that a source must tell of, made one after the other.
#include "vm/proof.hpp"

#include "sys/error.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace regcache {
namespace {

// A few pages, unmapped at the end unless the change took them away.
class Pages {
public:
    static constexpr std::size_t kPages = 4;

    Pages() : range_{map()} {}
    Pages(const Pages &) = delete;
    Pages &operator=(const Pages &) = delete;
    ~Pages()
    {
        if (!range_.is_empty())
            munmap(range_.address(), range_.size());
    }

    Range range() const noexcept { return range_; }
    // Pages from `first` on, `count` of them.
    Range part(std::size_t first, std::size_t count) const noexcept
    {
        const std::uintptr_t begin = range_.begin + first * page_size();
        return {begin, begin + count * page_size()};
    }
    // They are somewhere else by now, or nowhere.
    void are_now(Range range) noexcept { range_ = range; }

private:
    static Range map()
    {
        const std::size_t bytes = kPages * page_size();
        void *const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (address == MAP_FAILED)
            throw Error(errno, std::string("no memory for the proof of the event source: ") + std::strerror(errno));
        std::memset(address, 1, bytes);
        return Range::of(address, bytes);
    }

    Range range_;
};

struct Trial {
    const char *name;
    bool (*change)(Pages &); // false when the system call isn't there
    std::size_t first, count; // the pages whose event must come
};

bool unmap(Pages &pages)
{
    const bool done = munmap(pages.range().address(), pages.range().size()) == 0;
    pages.are_now({});
    return done;
}

bool unmap_the_middle(Pages &pages)
{
    const Range middle = pages.part(1, 2);
    const bool done = munmap(middle.address(), middle.size()) == 0;
    const Range last = pages.part(3, 1);
    munmap(last.address(), last.size());
    pages.are_now(pages.part(0, 1));
    return done;
}

bool map_over(Pages &pages)
{
    const Range all = pages.range();
    return mmap(all.address(), all.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
}

bool move(Pages &pages)
{
    // Growing in place is no move: take the place first.
    const Range all = pages.range();
    void *const place = mmap(nullptr, all.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return false;
    void *const moved = mremap(all.address(), all.size(), all.size(), MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved == MAP_FAILED) {
        munmap(place, all.size());
        return false;
    }
    pages.are_now(Range::of(moved, all.size()));
    return true;
}

bool shrink(Pages &pages)
{
    const Range all = pages.range();
    const Range rest = pages.part(0, 1);
    const bool done = mremap(all.address(), all.size(), rest.size(), 0) != MAP_FAILED;
    if (done)
        pages.are_now(rest);
    return done;
}

template <int Advice>
bool advise(Pages &pages)
{
    return madvise(pages.range().address(), pages.range().size(), Advice) == 0;
}

// MADV_FREE is no change: the kernel takes such pages later, and never those that a registration has pinned.
constexpr std::array kTrials{
    Trial{"munmap", unmap, 0, Pages::kPages},
    Trial{"munmap of a part", unmap_the_middle, 1, 2},
    Trial{"mmap(MAP_FIXED) over it", map_over, 0, Pages::kPages},
    Trial{"mremap to another place", move, 0, Pages::kPages},
    Trial{"mremap to a smaller size", shrink, 1, 3},
    Trial{"madvise(MADV_DONTNEED)", advise<MADV_DONTNEED>, 0, Pages::kPages},
};

// Whether the events from `cursor` on tell of all of `range`, if perhaps piece by piece.
bool tell_of(Source &source, EventQueue::Cursor cursor, Range range)
{
    std::array<bool, Pages::kPages> is_told{};
    const std::size_t count = range.size() / page_size();
    for (;;) {
        Event event;
        switch (source.next(cursor, event)) {
        case EventQueue::Next::Lost:
            return true;
        case EventQueue::Next::Empty:
            for (std::size_t i = 0; i < count; ++i)
                if (!is_told[i])
                    return false;
            return true;
        case EventQueue::Next::One:
            if (event.change == Change::Arrived)
                break;
            for (std::size_t i = 0; i < count; ++i) {
                const std::uintptr_t page = range.begin + i * page_size();
                is_told[i] |= event.range.contains({page, page + page_size()});
            }
        }
    }
}

void prove(Source &source, const Trial &trial)
{
    Pages pages;
    const Range changed = pages.part(trial.first, trial.count);
    WatchedRange watched{pages.range(), {}};
    if (const Watch answer = source.watch(watched); answer != Watch::Watched)
        throw Error(ENOSYS, std::string("it can't watch private memory: ") + describe(answer));
    const EventQueue::Cursor before_events = source.end();
    const std::uint64_t before = source.position();
    const bool is_done = trial.change(pages);
    const bool is_told = source.position() != before && tell_of(source, before_events, changed);
    source.unwatch(watched);
    if (is_done && !is_told)
        throw Error(ENOSYS, std::string("it doesn't tell of ") + trial.name);
}

} // namespace

void prove(Source &source)
{
    for (const Trial &trial : kTrials)
        prove(source, trial);
}

} // namespace regcache
