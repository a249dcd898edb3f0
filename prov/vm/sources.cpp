// SPDX-License-Identifier: BSD-2-Clause
// The table of event sources of the product.
#include "vm/sources.hpp"

#ifdef REGCACHE_HAVE_EBPF
#include "vm/ebpf.hpp"
#endif
#include "vm/none.hpp"
#include "vm/proof.hpp"
#include "vm/userfaultfd.hpp"

#include <array>

namespace regcache {
namespace {

#ifdef REGCACHE_HAVE_EBPF
std::shared_ptr<Source> start_ebpf(const SourceOptions &)
{
    auto source = std::make_shared<Ebpf>();
    prove(*source);
    return source;
}
#endif

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
#ifdef REGCACHE_HAVE_EBPF
    SourceKind{"ebpf", start_ebpf},
#endif
    SourceKind{"userfaultfd", start_userfaultfd},
    SourceKind{"none", start_none},
};

} // namespace

std::span<const SourceKind> source_kinds() noexcept
{
    return kKinds;
}

} // namespace regcache
