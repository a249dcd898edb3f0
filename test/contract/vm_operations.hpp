// SPDX-License-Identifier: BSD-2-Clause
// What can be done to memory, in one table: for each operation whether it changes the pages behind an address, and whether
// an event source tells. What is true is measured by vm_table.
#pragma once

#include "contract/vm_memory.hpp"

#include <span>

namespace regcache::test {

// Which part of the memory it is done to.
enum class Part { Whole, First, Middle, Last };

enum class Effect {
    Changes, // the address has other pages afterwards, or none
    Keeps,   // it has the very same pages
};

// What userfaultfd tells of it. Other sources tell of all that changes and of nothing else.
enum class Told {
    Rightly,    // of what changes
    Never,      // a hole where the memory is watched
    Needlessly, // although the pages stay
};

inline constexpr int kDoesNotApply = -1;

struct Operation {
    const char *name;
    Kinds kinds; // that it can be done to
    Part part;
    Effect effect;
    Told told;
    // 0, an errno, or kDoesNotApply. Leaves the rights as they were; may leave nothing mapped.
    int (*run)(const Area &area, Range part);
    Kinds keeps = 0;           // kinds whose pages stay although it `Changes`
    bool by_other = false;     // another process does it, which has the same memory mapped
    bool forks = false;        // forks while threads run
    bool by_malloc = false;    // the allocator does it, which a sanitizer replaces by one that keeps the memory
};

std::span<const Operation> operations();
Range range_of(const Area &area, Part part);

} // namespace regcache::test
