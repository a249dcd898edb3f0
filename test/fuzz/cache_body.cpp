// SPDX-License-Identifier: BSD-2-Clause
// The operations, and what must be so after each (cache_body.hpp). The addresses are made up: nobody looks at memory.
#include "fuzz/cache_body.hpp"

#include "fuzz/cache_reference.hpp"
#include "fuzz/noting_lower.hpp"
#include "support/eventually.hpp"
#include "support/scripted_source.hpp"

#include "cache/cache.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace regcache::test {
namespace {

constexpr std::size_t kPages = 32; // of the address space that is played in

// The bytes that say what to do; zeros when they are used up.
class Script {
public:
    Script(const std::uint8_t *bytes, std::size_t count) : at_(bytes), end_(bytes + count) {}
    bool is_over() const { return at_ == end_; }
    unsigned next(unsigned limit) { return is_over() ? 0 : *at_++ % limit; }

private:
    const std::uint8_t *at_, *end_;
};

class Player {
public:
    Player(Script &script, const PlayOptions &options) : script_(script), options_(options)
    {
        constexpr std::size_t kCounts[] = {SIZE_MAX, SIZE_MAX, 1, 2, 4, 8, 16, 0};
        constexpr std::size_t kPageLimits[] = {SIZE_MAX, SIZE_MAX, 4, 12};
        CacheOptions cache_options;
        cache_options.limits.max_count = kCounts[script_.next(8)];
        const std::size_t pages = kPageLimits[script_.next(4)];
        cache_options.limits.max_bytes = pages == SIZE_MAX ? pages : pages * page_size();
        cache_options.ends_with_use = script_.next(2) ? 4 : 0;
        may_hold_ = script_.next(4) == 0;
        reference_.limits = cache_options.limits;
        reference_.ends_with_use = cache_options.ends_with_use;
        cache_.emplace(cache_options, source_, lower_);
        // The keeper's first round is behind us: from here on it does nothing until somebody rings.
        require(soon([&] { return source_->looks() != 0; }), "the keeper doesn't begin");
    }

    Played play()
    {
        while (!script_.is_over()) {
            ++played_.steps;
            step();
            check();
        }
        end();
        return played_;
    }

private:
    // ---- operations

    void step()
    {
        switch (script_.next(20)) {
        default:
            return acquire();
        case 7:
        case 8:
        case 9:
        case 10:
        case 11:
        case 13:
            return release();
        case 12:
            return change(script_.next(8));
        case 14:
            tell_step("flush");
            cache_->flush();
            may_be_draining_ = false;
            reference_.finish_changes(); // all events are applied
            return forget_given_back([](const ReferenceEntry &entry) { return entry.users == 0; });
        case 15:
            return script_.next(16) == 0 ? ring() : acquire();
        case 16:
            return script_.next(4) == 0 ? order_below() : acquire();
        case 17:
            return prepare();
        case 18:
            return take_out();
        case 19:
            if (script_.next(64) == 0)
                return fork_once();
            if (script_.next(16) == 0)
                overflow();
        }
    }

    void acquire()
    {
        const auto [request, rights, match] = next_request();
        tell_step("acquire %#zx+%zu, rights %u, %s", request.begin, request.size(), static_cast<unsigned>(rights),
                  match == Match::Anywhere ? "anywhere" : "same start");
        const bool must_hit = !source_->is_busy && reference_.has_one_that_serves(Worth::Good, request, rights, match);
        const bool may_hit = must_hit || (!source_->is_busy &&
                                          reference_.has_one_that_serves(Worth::Doubtful, request, rights, match));
        const StatisticsSnapshot before = cache_->statistics();
        const std::size_t asked = lower_.asked();
        was_changed_inside_ = false;
        Region *region = nullptr;
        const int error = cache_->acquire(request.address(), request.size(), rights, match, &region);
        const StatisticsSnapshot after = cache_->statistics();
        lower_.while_registering = nullptr;
        source_->is_busy = false;
        may_be_draining_ = false; // it had the lock

        if (after.hits != before.hits) {
            ReferenceEntry *const entry = reference_.find(region->registration);
            require(may_hit && entry && entry->worth != Worth::Bad && Reference::serves(*entry, request, rights, match),
                    "a hit that nothing allows");
            require(lower_.asked() == asked, "a hit registers");
            ++entry->users;
            handles_.push_back(region);
            // Only what isn't worth anything may have gone meanwhile.
            forget_given_back([](const ReferenceEntry &gone) { return gone.users == 0 && gone.worth != Worth::Good; });
        } else {
            require(!must_hit, "a miss, and there is one that serves");
            missed(request, rights, match, error, region, before, after);
        }
        reset_preparations();
    }

    void missed(Range request, Rights rights, Match match, int error, Region *region, const StatisticsSnapshot &before,
                const StatisticsSnapshot &after)
    {
        require(after.misses == before.misses + 1, "neither hit nor miss");
        require((after.unconfirmed != before.unconfirmed) == was_busy_, "confirmed or not?");
        const Range pages = request.is_empty() ? Range{} : whole_pages(request, page_size());
        if (error != 0) {
            ++played_.refused;
            require(error == lower_.refuse_with || error == -ENOMEM, "an error of the cache's own");
            const std::uint64_t evicted = forget_evicted([](const Noted &) { return true; });
            require(after.evictions - before.evictions >= evicted, "gone, and not counted");
            const bool is_full = error == -ENOMEM || error == -EAGAIN || error == -ENOSPC;
            for (const ReferenceEntry &entry : reference_.entries)
                require(!is_full || entry.users != 0, "refused for want of room, and there is something to give up");
            return;
        }
        ReferenceEntry made{static_cast<Noted *>(region->registration)};
        const Noted &noted = *made.registration;
        require(noted.range == (match == Match::SameStart || pages.is_empty() ? request : pages), "another range is registered");
        require(noted.rights == rights, "other rights are registered");
        require(!lower_.is_given_back(noted), "handed out and given back");

        const bool is_watched = source_->answer == Watch::Watched && !pages.is_empty();
        require((after.uncacheable != before.uncacheable) == !is_watched, "watched or not?");
        const bool has_changed = was_changed_inside_ && changed_inside_.overlaps(watched_range(pages));
        const bool is_overtaken = after.overtaken != before.overtaken;
        require(!is_overtaken || has_changed || may_be_held_, "not kept, and nothing has changed");
        require(!is_watched || !has_changed || is_overtaken, "kept, and its pages have changed while it was registered");
        const bool has_room = reference_.fits_with(1, noted.range.size());
        require(after.not_admitted == before.not_admitted || !has_room, "not kept, and there is room");
        const bool is_kept = is_watched && !is_overtaken && after.not_admitted == before.not_admitted;
        if (!is_kept) {
            made.worth = Worth::Bad;
            made.is_out = true;
        }

        const bool was_refused = after.refused_below != before.refused_below;
        const std::uint64_t evicted = forget_evicted([&](const Noted &gone) {
            const bool is_covered = match == Match::Anywhere && is_kept && noted.range.contains(gone.range) &&
                                    covers(noted.rights, gone.rights);
            return is_covered || was_refused || !has_room;
        });
        require(after.evictions - before.evictions >= evicted, "gone, and not counted");
        reference_.entries.push_back(made);
        handles_.push_back(region);
    }

    void release()
    {
        if (handles_.empty())
            return;
        const unsigned index = script_.next(static_cast<unsigned>(handles_.size()));
        Region *const region = handles_[index];
        handles_.erase(handles_.begin() + index);
        ReferenceEntry &entry = *reference_.find(region->registration);
        tell_step("release %#zx, used by %u", entry.registration->range.begin, entry.users);
        const bool was_good = entry.worth == Worth::Good;
        const bool ends = (entry.registration->rights & reference_.ends_with_use) != 0;
        --entry.users;
        cache_->release(region);
        const bool is_gone = lower_.is_given_back(*entry.registration);
        if (entry.users != 0)
            require(!is_gone, "given back while it is used");
        else if (entry.is_out || ends)
            require(is_gone, "kept, and it may not be");
        else if (was_good)
            require(!is_gone, "given back, and it may be kept");
        if (is_gone)
            reference_.entries.erase(reference_.entries.begin() + (&entry - reference_.entries.data()));
    }

    void change(unsigned kind)
    {
        const Range range = next_range();
        tell_step("change %u of %#zx+%zu", kind, range.begin, range.size());
        if (kind == 0)
            return source_->tell(range, Change::Arrived);
        if (kind == 1) {
            source_->tell_early(range);
            return reference_.change(range, Worth::Doubtful);
        }
        const bool is_early = kind == 2 && may_hold_;
        may_be_held_ |= is_early;
        source_->tell(range, is_early ? Change::Going : Change::Gone);
        reference_.finish_changes();
        reference_.change(range, Worth::Bad);
    }

    // The queue has no room: everything counts as changed.
    void overflow()
    {
        if (may_be_draining_ || !may_hold_)
            return; // the keeper could keep up
        tell_step("overflow");
        source_->overflow();
        may_be_held_ = true;
        reference_.change(Range::everything(), Worth::Bad);
    }

    void ring()
    {
        tell_step("ring");
        const std::size_t looks = source_->looks();
        source_->ring();
        require(soon([&] { return source_->looks() != looks; }), "nobody comes when it rings");
        may_be_draining_ = true;
        require(soon([&] { return !has_unused_bad(); }), "unused, its pages are gone, and it stays");
        forget_given_back([](const ReferenceEntry &entry) { return entry.users == 0 && entry.worth != Worth::Good; });
    }
    // At once if it can be: sequences are many.
    template <class Question>
    static bool soon(Question question)
    {
        for (int turn = 0; turn < 10'000; ++turn) {
            if (question())
                return true;
            std::this_thread::yield();
        }
        return eventually(question);
    }
    bool has_unused_bad() const
    {
        return std::any_of(reference_.entries.begin(), reference_.entries.end(), [&](const ReferenceEntry &entry) {
            return entry.users == 0 && entry.worth == Worth::Bad && !lower_.is_given_back(*entry.registration);
        });
    }

    void order_below()
    {
        constexpr int kErrors[] = {-ENOMEM, -EAGAIN, -ENOSPC, -EFAULT};
        constexpr std::size_t kCaps[] = {SIZE_MAX, SIZE_MAX, 3, 6};
        switch (script_.next(3)) {
        case 0:
            lower_.refuse_with = kErrors[script_.next(4)];
            lower_.refuse_times = 1 + script_.next(4);
            return tell_step("refuse %u times with %d", lower_.refuse_times, lower_.refuse_with);
        case 1:
            lower_.max_count = kCaps[script_.next(4)];
            return tell_step("the lower holds %zd at most", static_cast<ssize_t>(lower_.max_count));
        default:
            lower_.fails_to_deregister = script_.next(8) == 0;
            return tell_step("deregistering %s", lower_.fails_to_deregister ? "fails" : "works");
        }
    }

    // Something special about the next acquire.
    void prepare()
    {
        switch (script_.next(4)) {
        case 0:
            source_->answer = static_cast<Watch>(script_.next(kWatchAnswers));
            return tell_step("watching will answer %u", static_cast<unsigned>(source_->answer));
        case 1:
            source_->is_busy = was_busy_ = true;
            return tell_step("no position will be known");
        case 2:
            source_->widens_to = 4 * page_size();
            return tell_step("watched ranges will be wider");
        default:
            changed_inside_ = next_range();
            tell_step("%#zx+%zu will change meanwhile", changed_inside_.begin, changed_inside_.size());
            lower_.while_registering = [this] {
                was_changed_inside_ = true;
                source_->tell(changed_inside_);
                reference_.finish_changes();
                reference_.change(changed_inside_, Worth::Bad);
            };
        }
    }

    void reset_preparations()
    {
        source_->answer = Watch::Watched;
        source_->widens_to = 0;
        was_busy_ = false;
    }

    void take_out()
    {
        if (handles_.empty())
            return;
        Region &region = *handles_[script_.next(static_cast<unsigned>(handles_.size()))];
        ReferenceEntry &entry = *reference_.find(region.registration);
        tell_step("take out %#zx", entry.registration->range.begin);
        require(cache_->take_out(region) == (entry.users == 1), "alone or not?");
        if (entry.users == 1) {
            entry.worth = Worth::Bad;
            entry.is_out = true;
        }
    }

    void fork_once()
    {
        if (!options_.may_fork)
            return;
        tell_step("fork");
        ++played_.forks;
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            use_when_off();
            std::_Exit(0);
        }
        int status = 0;
        require(waitpid(child, &status, 0) == child && status == 0, "the child fails");
    }

    // A cache that is off serves each request with a registration of its own, and leaves alone what it had.
    void use_when_off()
    {
        const std::size_t held = lower_.held();
        lower_.refuse_times = 0;
        lower_.max_count = lower_.max_bytes = SIZE_MAX;
        const Range range = at(3, 2);
        Region *first = nullptr, *second = nullptr;
        require(cache_->acquire(range.address(), range.size(), 1, Match::Anywhere, &first) == 0 &&
                    cache_->acquire(range.address(), range.size(), 1, Match::Anywhere, &second) == 0,
                "no registration when it is off");
        require(first->registration != second->registration && lower_.held() == held + 2, "a cache that is off keeps");
        cache_->release(first);
        cache_->release(second);
        for (Region *const region : handles_)
            cache_->release(region);
        cache_->flush();
        require(lower_.held() == held, "a cache that is off gives back what it had");
    }

    void end()
    {
        const StatisticsSnapshot seen = cache_->statistics();
        played_.hits = seen.hits;
        played_.misses = seen.misses;
        played_.evicted = seen.evictions;
        played_.overtaken = seen.overtaken;
        played_.not_admitted = seen.not_admitted;
        played_.unconfirmed = seen.unconfirmed;
        played_.uncacheable = seen.uncacheable;
        played_.invalidated = seen.invalidations;
        played_.lost = seen.lost;
        for (Region *const region : handles_)
            cache_->release(region);
        cache_.reset();
        require(lower_.held() == 0, "something is left at the end");
        require(lower_.wrong() == 0, "given back twice");
        require(source_->watched_now() == 0 && source_->wrong() == 0, "something is watched at the end");
    }

    // ---- what must always be so

    void check()
    {
        const StatisticsSnapshot seen = cache_->statistics();
        require(seen.asked == seen.hits + seen.misses, "requests aren't hits and misses");
        // The keeper counts after the fact.
        require(soon([&] { return cache_->statistics().pinned_bytes == lower_.live_bytes(); }), "pinned bytes are counted wrongly");
        require(lower_.wrong() == 0, "given back twice");
        require(reference_.fits_with(0, 0), "more is kept than the limits allow");
        for (const ReferenceEntry &entry : reference_.entries)
            require(!lower_.is_given_back(*entry.registration) || (entry.users == 0 && entry.worth != Worth::Good),
                    "given back, and it is used or good");
    }

    // Drops the entries that were given back, which must be among those that `may_go`.
    template <class Question>
    void forget_given_back(Question may_go)
    {
        std::erase_if(reference_.entries, [&](const ReferenceEntry &entry) {
            const bool is_gone = lower_.is_given_back(*entry.registration);
            require(!is_gone || may_go(entry), "given back for no reason");
            return is_gone;
        });
    }
    // The same after a miss, for which good ones may have had to go too; counts these.
    template <class Question>
    std::uint64_t forget_evicted(Question may_go)
    {
        std::uint64_t count = 0;
        forget_given_back([&](const ReferenceEntry &entry) {
            if (entry.worth != Worth::Good)
                return entry.users == 0;
            ++count;
            return entry.users == 0 && may_go(*entry.registration);
        });
        return count;
    }
    void forget_all_unused(const char *otherwise)
    {
        reference_.finish_changes(); // all events are applied
        forget_given_back([](const ReferenceEntry &entry) { return entry.users == 0; });
        for (const ReferenceEntry &entry : reference_.entries)
            require(entry.users != 0, "%s", otherwise);
    }

    [[gnu::format(printf, 3, 4)]] void require(bool is_so, const char *format, ...) const
    {
        if (is_so)
            return;
        va_list arguments;
        va_start(arguments, format);
        std::fprintf(stderr, "FAILED in step %llu: ", static_cast<unsigned long long>(played_.steps));
        std::vfprintf(stderr, format, arguments);
        std::fputc('\n', stderr);
        va_end(arguments);
        std::abort();
    }

    [[gnu::format(printf, 2, 3)]] void tell_step(const char *format, ...) const
    {
        if (!options_.tells_steps)
            return;
        va_list arguments;
        va_start(arguments, format);
        std::printf("%4llu: ", static_cast<unsigned long long>(played_.steps));
        std::vprintf(format, arguments);
        std::putchar('\n');
        std::fflush(stdout);
        va_end(arguments);
    }

    // ---- what the script asks for

    struct Request {
        Range range;
        Rights rights;
        Match match;
    };

    static Range at(std::size_t first, std::size_t count)
    {
        const std::uintptr_t begin = (0x10'0000 + first) * page_size();
        return {begin, begin + count * page_size()};
    }
    Range next_range()
    {
        constexpr std::size_t kSizes[] = {1, 1, 2, 4, 4, 7};
        const unsigned first = script_.next(kPages) & ~1u;
        return at(first, kSizes[script_.next(6)]);
    }
    Request next_request()
    {
        // Half of them are the same few again and again, so that there are hits.
        if (script_.next(2) == 0) {
            const unsigned which = script_.next(4);
            return {at(4 * which, which == 3 ? 1 : 3), 1, Match::Anywhere};
        }
        Range range = next_range();
        switch (script_.next(10)) {
        case 0: // bytes, not pages
            range.begin += 1 + script_.next(200);
            range.end -= script_.next(200);
            break;
        case 1: // none at all
            range.end = range.begin += script_.next(2);
            break;
        case 2: // around the end of the address space
            if (script_.next(4) == 0)
                range.end = range.begin - 1 - script_.next(200);
            break;
        default:
            break;
        }
        constexpr Rights kRights[] = {1, 1, 1, 2, 3, 4, 5, 7};
        const Rights rights = kRights[script_.next(8)];
        return {range, rights, script_.next(6) == 0 ? Match::SameStart : Match::Anywhere};
    }
    Range watched_range(Range pages) const
    {
        return source_->widens_to != 0 ? whole_pages(pages, source_->widens_to) : pages;
    }

    Script &script_;
    const PlayOptions options_;
    Played played_;
    std::shared_ptr<ScriptedSource> source_ = std::make_shared<ScriptedSource>();
    NotingLower lower_;
    Reference reference_;
    std::optional<Cache> cache_;
    std::vector<Region *> handles_;
    Range changed_inside_;             // told while the lower registers
    bool was_changed_inside_ = false;
    bool may_hold_ = false;            // what comes keeps the cache from keeping anything for longer than a sequence takes
    bool may_be_held_ = false;         // something has been told before it happened, so that what is near it isn't kept
    bool was_busy_ = false;
    bool may_be_draining_ = false;     // the keeper was woken and may be reading events
};

} // namespace

Played &Played::operator+=(const Played &other)
{
    steps += other.steps;
    hits += other.hits;
    misses += other.misses;
    refused += other.refused;
    evicted += other.evicted;
    overtaken += other.overtaken;
    not_admitted += other.not_admitted;
    unconfirmed += other.unconfirmed;
    uncacheable += other.uncacheable;
    invalidated += other.invalidated;
    lost += other.lost;
    forks += other.forks;
    return *this;
}

std::string text_of(const Played &played)
{
    std::string text;
    const auto add = [&](std::uint64_t number, const char *what) { text += std::to_string(number) + what; };
    add(played.steps, " steps: ");
    add(played.hits, " hits, ");
    add(played.misses, " misses (");
    add(played.refused, " refused, ");
    add(played.uncacheable, " uncacheable, ");
    add(played.overtaken, " overtaken, ");
    add(played.not_admitted, " not admitted, ");
    add(played.unconfirmed, " not confirmed), ");
    add(played.evicted, " evicted, ");
    add(played.invalidated, " invalidated, ");
    add(played.lost, " times lost, ");
    add(played.forks, " forks");
    return text;
}

Played play_on_cache(const std::uint8_t *bytes, std::size_t count, const PlayOptions &options)
{
    Script script(bytes, count);
    return Player(script, options).play();
}

} // namespace regcache::test
