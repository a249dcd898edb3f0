// SPDX-License-Identifier: BSD-2-Clause
// A provider below whose registrations pin pages, and show which pages they are. Counts nothing.
#pragma once

#include "stress/options.hpp"
#include "support/pin/ring.hpp"

#include "cache/lower.hpp"
#include "cache/region.hpp"

#include <cstdint>
#include <string>

namespace regcache::test {

// Any thread. A registration is a slot of the ring's table, plus one, as a pointer.
class PinningLower final : public Lower {
public:
    // Ends the program as skipped when pages can't be pinned here.
    static void probe_or_skip()
    {
        std::string why;
        if (pin::probe(why) != 0)
            skip_program(why);
    }

    explicit PinningLower(Failures &failures) : failures_(failures) {}

    int register_range(Range range, Rights, void **registration) noexcept override
    {
        const int slot = ring_.pin(range.address(), range.size());
        if (slot < 0)
            return slot;
        *registration = reinterpret_cast<void *>(static_cast<std::uintptr_t>(slot) + 1);
        return 0;
    }

    int deregister(void *registration) noexcept override
    {
        ring_.unpin(slot_of(registration));
        return 0;
    }

    // The word that the card sees at `address`, whatever is mapped there now.
    std::uint64_t read_through(const Region &region, const void *address)
    {
        std::uint64_t word = 0;
        const ssize_t got = ring_.copy_out(slot_of(region.registration), address, &word, sizeof word);
        failures_.unless(got == static_cast<ssize_t>(sizeof word), "reading through a registration fails with %zd", got);
        return word;
    }

private:
    static int slot_of(void *registration) noexcept
    {
        return static_cast<int>(reinterpret_cast<std::uintptr_t>(registration) - 1);
    }

    Failures &failures_;
    pin::Ring ring_;
};

} // namespace regcache::test
