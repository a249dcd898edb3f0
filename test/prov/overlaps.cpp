// SPDX-License-Identifier: BSD-2-Clause
// Random registrations that overlap each other, with changes of the memory, closes and limits in between, against a model that
// knows what each page holds. The seed is printed.
#include "prov/changes.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr std::size_t kPages = 24;

// Every page holds a letter, and every handle knows which letter each of its pages had when its memory was last replaced.
class Walk {
public:
    Walk(Card &card, unsigned seed) : card_(card), random_(seed), memory_(replaceable(Kind::Private, kPages * page_size()))
    {
        memory_.fill('?');
        for (std::size_t page = 0; page < kPages; ++page)
            renew(page);
    }

    void run(int steps)
    {
        for (int step = 0; step < steps; ++step) {
            const unsigned kind = random_() % 100;
            if (kind < 50)
                register_some();
            else if (kind < 75)
                close_one();
            else if (kind < 95)
                replace_some();
            else
                write_some();
        }
        open_.clear();
    }

    unsigned wrong = 0;

private:
    struct Open {
        Region region;
        std::size_t first, count;
        std::vector<unsigned> generations;
    };

    char *page(std::size_t number) const { return memory_.data() + number * page_size(); }
    void renew(std::size_t number)
    {
        ++generations_[number];
        write(number);
    }
    void write(std::size_t number) { *page(number) = letters_[number] = static_cast<char>('A' + next_letter_++ % 58); }

    std::pair<std::size_t, std::size_t> some_pages()
    {
        const std::size_t first = random_() % kPages;
        return {first, 1 + random_() % (kPages - first)};
    }

    void register_some()
    {
        const auto [first, count] = some_pages();
        constexpr std::uint64_t kAccess[] = {FI_SEND, FI_RECV, kLocalRights, kAllRights};
        Open open{card_.reg(page(first), count * page_size(), kAccess[random_() % 4]), first, count, {}};
        if (!open.region) {
            ++wrong;
            return;
        }
        for (std::size_t i = first; i < first + count; ++i) {
            wrong += seen(open.region, page(i)) != letters_[i];
            open.generations.push_back(generations_[i]);
        }
        open_.push_back(std::move(open));
    }

    void close_one()
    {
        if (open_.empty())
            return;
        std::swap(open_[random_() % open_.size()], open_.back());
        // Pages that were not replaced meanwhile are the card's still.
        const Open &last = open_.back();
        for (std::size_t i = 0; i < last.count; ++i)
            if (last.generations[i] == generations_[last.first + i])
                wrong += seen(last.region, page(last.first + i)) != letters_[last.first + i];
        open_.pop_back();
    }

    void replace_some()
    {
        const auto [first, count] = some_pages();
        const std::vector<Change> changes = private_changes();
        if (!changes[random_() % changes.size()].make(page(first), count * page_size()))
            replace_by_unmapping(page(first), count * page_size());
        for (std::size_t i = first; i < first + count; ++i)
            renew(i);
    }

    void write_some()
    {
        const auto [first, count] = some_pages();
        for (std::size_t i = first; i < first + count; ++i)
            write(i);
    }

    Card &card_;
    std::minstd_rand random_;
    Mapping memory_;
    char letters_[kPages] = {};
    unsigned generations_[kPages] = {};
    unsigned next_letter_ = 0;
    std::vector<Open> open_;
};

void walk(const char *max_count, const char *max_size)
{
    const Watchdog watchdog("a walk over overlaps");
    const Variable count("FI_REGCACHE_MAX_COUNT", max_count), size("FI_REGCACHE_MAX_SIZE", max_size);
    const unsigned seed = std::random_device()();
    {
        Card card(over_pin());
        Walk walk(card, seed);
        walk.run(sanitizer() ? 1000 : 6000);
        cr_expect(walk.wrong == 0, "%u times wrong; seed %u, count %s, size %s", walk.wrong, seed, max_count, max_size);
    }
    expect_pin_is_empty();
}

} // namespace

TestSuite(overlaps, .init = need_pin);

Test(overlaps, are_right_without_a_limit) { walk("1000000", "1G"); }
Test(overlaps, are_right_with_room_for_four) { walk("4", "1G"); }
Test(overlaps, are_right_with_room_for_one) { walk("1", "1G"); }
Test(overlaps, are_right_with_room_for_ten_pages) { walk("1000", "40K"); }
