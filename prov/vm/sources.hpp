// SPDX-License-Identifier: BSD-2-Clause
// Which event sources there are, best first. A test build puts another table in its place.
#pragma once

#include "vm/choice.hpp"
#include "vm/source.hpp"

#include <memory>
#include <span>

namespace regcache {

struct SourceKind {
    const char *name;
    // Starts it and lets it prove itself; throws Error with the reason why it can't serve here.
    std::shared_ptr<Source> (*start)(const SourceOptions &);
};

// The last one always starts.
std::span<const SourceKind> source_kinds() noexcept;

} // namespace regcache
