// SPDX-License-Identifier: BSD-2-Clause
// vm/proof.cpp: a source that doesn't keep its promise is found out, by the name of the change.
#include "prov/refusals.hpp"
#include "support/base.hpp"
#include "support/faulty_sources.hpp"
#include "support/real_sources.hpp"

#include "vm/proof.hpp"

#include <sys/syscall.h>

#include <cerrno>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

// What prove() says, "" if it is content.
std::string verdict(Source &source)
{
    try {
        prove(source);
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

bool fails_by(Source &source, const std::string &words)
{
    const std::string said = verdict(source);
    if (said.find(words) == std::string::npos)
        std::printf("\"%s\" isn't in \"%s\"\n", words.c_str(), said.c_str());
    return said.find(words) != std::string::npos;
}

// In the order in which they are tried.
const char *const kChanges[] = {
    "munmap", "munmap of a part", "mmap(MAP_FIXED) over it", "mremap to another place", "mremap to a smaller size",
    "madvise(MADV_DONTNEED)"};

// Counts what is watched, and is blind while the `blind_at`-th range is.
class Counting final : public Wrapped {
public:
    using Wrapped::Wrapped;
    unsigned blind_at = ~0u;
    bool is_late = false; // instead of being blind, position() doesn't move

    unsigned watches = 0, unwatches = 0;

    Watch watch(WatchedRange &watched) noexcept override
    {
        is_blind_ = watches++ == blind_at;
        frozen_ = inner_->position();
        return inner_->watch(watched);
    }
    void unwatch(WatchedRange &watched) noexcept override
    {
        ++unwatches;
        inner_->unwatch(watched);
    }
    std::uint64_t position() noexcept override { return is_blind_ && is_late ? frozen_ : inner_->position(); }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        return is_blind_ && !is_late ? EventQueue::Next::Empty : inner_->next(cursor, event);
    }

private:
    bool is_blind_ = false;
    std::uint64_t frozen_ = 0;
};

} // namespace

Test(proof, every_source_that_is_offered_passes)
{
    const unsigned count = each_source([](const Started &started) {
        for (int i = 0; i < 20; ++i)
            cr_expect(verdict(*started.source) == "", "%s: %s", started.name.c_str(), verdict(*started.source).c_str());
    });
    if (count == 0)
        skip("no event source starts here");
}

Test(proof, leaves_nothing_watched_and_nothing_mapped)
{
    Counting source(userfaultfd_or_skip());
    cr_expect(verdict(source) == "");
    const Base before = measure_base();
    for (int i = 0; i < 100; ++i)
        cr_expect(verdict(source) == "");
    cr_expect(measure_base().mappings < before.mappings + 50);
    cr_expect(source.watches == source.unwatches && source.watches > 0);
}

Test(proof, source_that_is_blind_to_one_change_fails_by_its_name)
{
    for (const bool is_late : {false, true})
        for (unsigned i = 0; i < std::size(kChanges); ++i) {
            Counting source(userfaultfd_or_skip());
            source.blind_at = i;
            source.is_late = is_late;
            cr_expect(verdict(source) == std::string("it doesn't tell of ") + kChanges[i], "%s", verdict(source).c_str());
            cr_expect(source.watches == source.unwatches);
        }
    Counting source(userfaultfd_or_skip());
    source.blind_at = std::size(kChanges);
    cr_expect(verdict(source) == ""); // those are all
}

Test(proof, blind_and_deaf_sources_fail)
{
    BlindSource blind(userfaultfd_or_skip());
    cr_expect(fails_by(blind, "it doesn't tell of munmap"));
    DeafSource deaf(userfaultfd_or_skip());
    cr_expect(fails_by(deaf, "it doesn't tell of munmap"));
}

Test(proof, source_that_drops_a_kind_of_event_fails)
{
    ForgetfulSource going(userfaultfd_or_skip());
    going.drops = [](const Event &event) { return event.change == Change::Going; };
    cr_expect(fails_by(going, "MADV_DONTNEED"));
    ForgetfulSource gone(userfaultfd_or_skip());
    gone.drops = [](const Event &event) { return event.change == Change::Gone; };
    cr_expect(fails_by(gone, "munmap"));
    ForgetfulSource arrived(userfaultfd_or_skip());
    arrived.drops = [](const Event &event) { return event.change == Change::Arrived; };
    cr_expect(verdict(arrived) == ""); // which says nothing about cached memory
}

Test(proof, source_that_tells_a_page_too_little_fails)
{
    ForgetfulSource first(userfaultfd_or_skip()), last(userfaultfd_or_skip());
    first.cuts = [](Event &event) { event.range.begin += page_size(); };
    last.cuts = [](Event &event) { event.range.end -= 1; };
    cr_expect(fails_by(first, "munmap"));
    cr_expect(fails_by(last, "munmap"));
}

Test(proof, source_that_calls_pages_arrived_fails)
{
    ForgetfulSource source(userfaultfd_or_skip());
    source.cuts = [](Event &event) { event.change = Change::Arrived; };
    cr_expect(fails_by(source, "munmap"));
}

Test(proof, lost_events_count_as_told)
{
    class Losing final : public Wrapped {
    public:
        using Wrapped::Wrapped;
        EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
        {
            const auto next = inner_->next(cursor, event);
            return next == EventQueue::Next::One ? EventQueue::Next::Lost : next;
        }
    };
    Losing source(userfaultfd_or_skip());
    cr_expect(verdict(source) == "");
}

Test(proof, refused_watch_is_named)
{
    class Refusing final : public Source {
    public:
        const char *name() const noexcept override { return "refusing"; }
        Watch watch(WatchedRange &) noexcept override { return Watch::TooMany; }
        void unwatch(WatchedRange &) noexcept override {}
        std::uint64_t position() noexcept override { return 0; }
    };
    Refusing source;
    cr_expect(fails_by(source, "can't watch private memory"));
    cr_expect(fails_by(source, describe(Watch::TooMany)));
}

// A kernel without a system call has no need of its event.
Test(proof, change_that_cannot_be_made_is_no_failure)
{
    const auto source = userfaultfd_or_skip();
    on_own_thread([&] {
        if (refuse(SYS_mremap, kAnyCommand, ENOSYS))
            cr_expect(verdict(*source) == "");
    });
}

Test(proof, without_memory_it_says_so)
{
    skip_under_sanitizer("its run time needs the memory that the test takes away");
    const auto source = userfaultfd_or_skip();
    on_own_thread([&] {
        cr_expect(std::string(50'000, 'x').size() == 50'000); // the allocator has what it needs from here on
        if (refuse(SYS_mmap, kAnyCommand, ENOMEM))
            cr_expect(fails_by(*source, "no memory for the proof"));
    });
}
