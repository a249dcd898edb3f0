// SPDX-License-Identifier: BSD-2-Clause
// The table of event sources of the product.
#include "vm/sources.hpp"

#include "vm/none.hpp"
#include "vm/proof.hpp"
#include "vm/userfaultfd.hpp"

#include <array>

namespace regcache {
namespace {

std::shared_ptr<Source> start_userfaultfd(const SourceOptions &options)
{
    auto source = std::make_shared<Userfaultfd>(options.caches_shared);
    prove(*source);
    return source;
}

std::shared_ptr<Source> start_none(const SourceOptions &)
{
    return std::make_shared<None>();
}

constexpr std::array kKinds{
    SourceKind{"userfaultfd", start_userfaultfd},
    SourceKind{"none", start_none},
};

} // namespace

std::span<const SourceKind> source_kinds() noexcept
{
    return kKinds;
}

} // namespace regcache
