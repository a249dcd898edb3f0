// SPDX-License-Identifier: BSD-2-Clause
// One cell of the table (vm_cell.hpp).
#include "contract/vm_cell.hpp"

#include "support/base.hpp"
#include "support/pin/ring.hpp"

#include "cache/cache.hpp"
#include "sys/error.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace regcache::test {
namespace {

// Pins where it can; else it is a lower provider that only says so. A registration is a slot plus one, or kNoSlot.
class TableLower final : public Lower {
public:
    static constexpr std::uintptr_t kNoSlot = UINTPTR_MAX;

    TableLower()
    {
        std::string why;
        if (pin::probe(why) == 0)
            ring_ = std::make_unique<pin::Ring>();
    }
    int register_range(Range range, Rights, void **registration) noexcept override
    {
        const int slot = ring_ ? ring_->pin(range.address(), range.size()) : -1;
        *registration = reinterpret_cast<void *>(slot < 0 ? kNoSlot : static_cast<std::uintptr_t>(slot) + 1);
        return 0;
    }
    int deregister(void *registration) noexcept override
    {
        if (is_pinned(registration))
            ring_->unpin(slot_of(registration));
        return 0;
    }
    static bool is_pinned(void *registration) { return reinterpret_cast<std::uintptr_t>(registration) != kNoSlot; }
    bool read(void *registration, std::uintptr_t address, char *to, std::size_t bytes)
    {
        return ring_->copy_out(slot_of(registration), reinterpret_cast<void *>(address), to, bytes) ==
               static_cast<ssize_t>(bytes);
    }

private:
    static int slot_of(void *registration) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(registration) - 1); }
    std::unique_ptr<pin::Ring> ring_;
};

void say(Outcome &outcome, Answer answer, const std::string &text)
{
    outcome.answer = answer;
    std::snprintf(outcome.text, sizeof outcome.text, "%s", text.c_str());
}

// The first bytes of each page: they tell pages apart.
constexpr std::size_t kMark = 8;

std::vector<char> marks_of(const Area &area)
{
    std::vector<char> marks;
    for (std::uintptr_t at = area.whole().begin; at < area.whole().end; at += page_size())
        marks.insert(marks.end(), reinterpret_cast<char *>(at), reinterpret_cast<char *>(at) + kMark);
    return marks;
}

void mark(const Area &area, char letter)
{
    unsigned number = 0;
    for (std::uintptr_t at = area.whole().begin; area.is_writable && at < area.whole().end; at += page_size()) {
        char text[kMark + 1];
        std::snprintf(text, sizeof text, "%c%07u", letter, number++ % 10'000'000);
        std::memcpy(reinterpret_cast<void *>(at), text, kMark);
    }
}

// What a program does that is given the address again.
bool fill_holes(const Area &area)
{
    for (std::uintptr_t at = area.whole().begin; at < area.whole().end; at += page_size()) {
        unsigned char is_there = 0;
        void *const page = reinterpret_cast<void *>(at);
        if (mincore(page, page_size(), &is_there) == 0 || errno != ENOMEM)
            continue;
        if (mmap(page, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
            return false;
    }
    return true;
}

// The other process: has the same memory mapped, does the operation when it is told to, and says how it went.
class Other {
public:
    Other(const Area &area, const Operation &operation)
    {
        if (pipe(order_) != 0 || pipe(answer_) != 0)
            return;
        child_ = fork();
        if (child_ != 0)
            return;
        alarm(60 * patience());
        close(order_[1]);
        char byte = 0;
        int result = EPIPE;
        if (::read(order_[0], &byte, 1) == 1)
            result = operation.run(area, range_of(area, operation.part));
        _exit(write(answer_[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    int run()
    {
        int result = EPIPE;
        close(answer_[1]);
        if (child_ < 0 || write(order_[1], "x", 1) != 1 || ::read(answer_[0], &result, sizeof result) != sizeof result)
            result = EPIPE;
        waitpid(child_, nullptr, 0);
        return result;
    }

private:
    int order_[2], answer_[2];
    pid_t child_ = -1;
};

void judge(const Area &area, const Operation &operation, TableLower &lower, Cache &cache, Other *other,
           Outcome &outcome)
{
    Region *first = nullptr, *second = nullptr;
    if (cache.acquire(area.start, area.bytes, 1, Match::Anywhere, &first) != 0)
        return say(outcome, Answer::Broken, "the first request failed");
    outcome.is_pinned = TableLower::is_pinned(first->registration);
    if (first->state != RegionState::Cached) {
        const auto numbers = cache.statistics();
        for (unsigned i = 0; i < kWatchAnswers; ++i)
            if (numbers.uncacheable_by_reason[i] != 0)
                return say(outcome, Answer::NotCached, describe(static_cast<Watch>(i)));
        return say(outcome, Answer::Broken, "a first request wasn't kept");
    }
    const std::vector<char> before = marks_of(area);
    outcome.error = other ? other->run() : operation.run(area, range_of(area, operation.part));
    if (outcome.error == kDoesNotApply)
        return say(outcome, Answer::NotApplicable, "");
    if (outcome.error != 0)
        return say(outcome, Answer::Refused, std::strerror(outcome.error));
    if (!fill_holes(area))
        return say(outcome, Answer::Broken, "the address was taken by somebody else");
    const bool is_changed = marks_of(area) != before;
    if (cache.acquire(area.start, area.bytes, 1, Match::Anywhere, &second) != 0)
        return say(outcome, Answer::Broken, "the second request failed");
    const bool is_hit = second == first;
    // Other bytes are other pages, but for one who doesn't see the pages themselves.
    bool is_right = !is_hit || !is_changed;
    if (TableLower::is_pinned(second->registration)) {
        is_right = true;
        mark(area, 'B');
        const std::vector<char> marks = marks_of(area);
        for (std::size_t page = 0; is_right && page * page_size() < area.bytes; ++page) {
            char seen[kMark] = "";
            is_right = lower.read(second->registration, area.whole().begin + page * page_size(), seen, kMark) &&
                       std::memcmp(seen, marks.data() + page * kMark, kMark) == 0;
        }
    }
    if (is_hit)
        say(outcome, is_right ? Answer::Untouched : Answer::Hole, "");
    else
        say(outcome, is_right ? Answer::Invalidated : Answer::Broken, is_right ? "" : "a new registration has wrong pages");
    cache.release(second);
    cache.release(first);
}

void run_in_child(const SourceKind &kind, bool watches_shared, AreaKind area_kind, const Operation &operation, Outcome &outcome)
{
    const std::string why = with_area(area_kind, [&](const Area &area) {
        mark(area, 'A');
        std::unique_ptr<Other> other; // forked while there are no threads
        if (operation.by_other)
            other = std::make_unique<Other>(area, operation);
        SourceOptions options;
        options.caches_shared = watches_shared;
        std::shared_ptr<Source> source;
        try {
            source = kind.start(options);
        } catch (const Error &error) {
            return say(outcome, Answer::Missing, error.what());
        }
        TableLower lower;
        CacheOptions settings;
        settings.name = "table";
        Cache cache(settings, source, lower);
        judge(area, operation, lower, cache, other.get(), outcome);
    });
    if (!why.empty())
        say(outcome, Answer::Missing, why);
}

} // namespace

Outcome run_cell(const SourceKind &source, bool watches_shared, AreaKind kind, const Operation &operation)
{
    Outcome outcome;
    if ((operation.kinds & bit(kind)) == 0) {
        say(outcome, Answer::NotApplicable, "");
        return outcome;
    }
    void *const memory = mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return outcome;
    auto *const shared = new (memory) Outcome;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(100 * patience());
        run_in_child(source, watches_shared, kind, operation, *shared);
        _exit(0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    outcome = *shared;
    munmap(memory, sizeof(Outcome));
    if (WIFSIGNALED(status))
        say(outcome, Answer::Broken, "ended by signal " + std::to_string(WTERMSIG(status)));
    return outcome;
}

} // namespace regcache::test
