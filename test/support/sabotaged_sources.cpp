// SPDX-License-Identifier: BSD-2-Clause
// A table of event sources that don't keep their promise, in the place of the product's (vm/sources.cpp), for controls: a test
// that finds nothing wrong with these sees nothing. FI_REGCACHE_SOURCE chooses one.
//
//   proved       sees no change, and has to prove itself; what "auto" tries first
//   none         the product's, where "auto" ends when the proof does its work
//   blind        sees no change and isn't asked for a proof
//   unconfirmed  userfaultfd as it is, but for the question whether a change is on its way
#include "vm/sources.hpp"

#include "stress/unconfirmed.hpp"
#include "vm/none.hpp"
#include "vm/proof.hpp"
#include "vm/userfaultfd.hpp"

#include <array>

namespace regcache {
namespace {

class Blind final : public Source {
public:
    const char *name() const noexcept override { return "blind"; }
    Watch watch(WatchedRange &) noexcept override { return Watch::Watched; }
    void unwatch(WatchedRange &) noexcept override {}
    std::uint64_t position() noexcept override { return 0; }
};

constexpr std::array kKinds{
    SourceKind{"proved",
               [](const SourceOptions &) -> std::shared_ptr<Source> {
                   auto source = std::make_shared<Blind>();
                   prove(*source);
                   return source;
               }},
    SourceKind{"none", [](const SourceOptions &) -> std::shared_ptr<Source> { return std::make_shared<None>(); }},
    SourceKind{"blind", [](const SourceOptions &) -> std::shared_ptr<Source> { return std::make_shared<Blind>(); }},
    SourceKind{"unconfirmed",
               [](const SourceOptions &options) -> std::shared_ptr<Source> {
                   return std::make_shared<test::Unconfirmed>(std::make_shared<Userfaultfd>(options.caches_shared));
               }},
};

} // namespace

std::span<const SourceKind> source_kinds() noexcept
{
    return kKinds;
}

} // namespace regcache
