// SPDX-License-Identifier: BSD-2-Clause
// What this process holds (pinned memory, threads, descriptors), and whether it is back where it was. From /proc/self;
// doesn't know who holds it.
#pragma once

#include <cstddef>
#include <string>

namespace regcache::test {

// The sanitizer this program is built with, or nullptr.
const char *sanitizer() noexcept;
// How much more time things may take here: more than 1 when sanitized.
unsigned patience() noexcept;

struct Base {
    std::size_t pinned_kib;   // VmPin: pages pinned by io_uring, verbs, ... on behalf of this process
    std::size_t resident_kib; // VmRSS: to show, not to compare (allocators keep what they like)
    std::size_t mappings;     // lines of /proc/self/maps: to show only
    unsigned threads;
    unsigned descriptors;
};

// Throws runtime_error when /proc isn't there.
Base measure_base();

// Waits (patience() x 30 s at most) until no more is pinned, running and open than there was; false, and a line on stderr with both
// states, when it stays more. Take the base after a Watchdog began, which is a thread.
bool is_back_at_base(const Base &before);
// The same for pinned memory alone, while the rest is still in use.
bool is_pinned_back_at(std::size_t pinned_kib);

std::string text_of(const Base &base);

} // namespace regcache::test
