// SPDX-License-Identifier: BSD-2-Clause
// Rounds in which an address gets other pages, is registered again, and the card looks. They count what is wrong; what is
// right is the test's to say, for a sabotaged source must be found out.
#pragma once

#include "prov/changes.hpp"
#include "prov/over_pin.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace regcache::test {

// An address where nothing is mapped at first.
class Place {
public:
    explicit Place(std::size_t bytes) : bytes_(bytes), start_(far_away(bytes)) {}
    ~Place() { munmap(start_, bytes_); }
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;

    char *start() const { return start_; }
    std::size_t bytes() const { return bytes_; }

private:
    const std::size_t bytes_;
    char *const start_;
};

// Fills, registers and looks at every page: false if the card saw anything else.
inline bool is_fresh(Card &card, const Place &place, char letter)
{
    std::memset(place.start(), letter, place.bytes());
    const Region region = card.reg(place.start(), place.bytes());
    bool is_right = static_cast<bool>(region);
    for (std::size_t at = 0; at < place.bytes() && is_right; at += page_size())
        is_right = seen(region, place.start() + at) == letter;
    return is_right;
}

inline char letter_of(int round) { return static_cast<char>('A' + round % 26); }

// One thread does it all. How many rounds were wrong.
inline int stale_rounds_of_one_thread(Card &card, int rounds)
{
    const Place place(2 * page_size());
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        wrong += !map_at(place.start(), place.bytes()) || !is_fresh(card, place, letter_of(round));
        munmap(place.start(), place.bytes());
    }
    return wrong;
}

// One thread unmaps; the other maps as soon as the kernel lets it, registers and looks, while the first may still be in its
// system call. How many rounds were wrong until there were `enough`.
inline int stale_rounds_of_two_threads(Card &card, int rounds, int enough)
{
    const Place place(2 * page_size());
    std::atomic<int> to_unmap{0}; // the round whose memory is to be unmapped; -1: no more
    std::thread unmapper([&] {
        for (int round = 1;; ++round) {
            int now = 0;
            while ((now = to_unmap.load()) >= 0 && now < round)
                sched_yield();
            munmap(place.start(), place.bytes());
            if (now < 0)
                return;
        }
    });
    int wrong = 0;
    for (int round = 1; round <= rounds && wrong < enough; ++round) {
        while (!map_at(place.start(), place.bytes()))
            sched_yield();
        wrong += !is_fresh(card, place, letter_of(round));
        to_unmap.store(round);
    }
    to_unmap.store(-1);
    unmapper.join();
    return wrong;
}

} // namespace regcache::test
