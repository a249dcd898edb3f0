// SPDX-License-Identifier: BSD-2-Clause
// One operation on one kind of memory over one event source, in a process of its own: what happens to a cached region. The
// registrations pin pages where that can be done, so that what a card would see can be compared with what is there.
#pragma once

#include "contract/vm_operations.hpp"

#include "vm/sources.hpp"

namespace regcache::test {

enum class Answer {
    NotApplicable, // to that kind of memory
    Missing,       // there is none of that kind of memory, or no such source, on this machine
    Refused,       // the kernel doesn't do it here
    NotCached,     // the memory isn't cached, so it doesn't matter
    Invalidated,   // the next request was registered anew
    Untouched,     // the next request was a hit, and the pages are the right ones
    Hole,          // the next request was a hit, and the pages are wrong ones
    Broken,        // what the test itself counts on doesn't hold: text says what
};

struct Outcome {
    Answer answer = Answer::Broken;
    int error = 0;         // why it was refused
    bool is_pinned = false; // pages were really pinned and read
    char text[160] = "it ended without an answer";
};

// Forks; the process must have no threads. Ends within some minutes, whatever happens.
Outcome run_cell(const SourceKind &source, bool watches_shared, AreaKind kind, const Operation &operation);

} // namespace regcache::test
