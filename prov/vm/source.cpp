// SPDX-License-Identifier: BSD-2-Clause
// What the answers to a wish to watch mean, in words for users.
#include "vm/source.hpp"

namespace regcache {

const char *describe(Watch answer) noexcept
{
    switch (answer) {
    case Watch::Watched:
        return "watched";
    case Watch::NoEvents:
        return "no event source is in use";
    case Watch::NotMapped:
        return "not everything is mapped there";
    case Watch::SharedKind:
        return "a shared mapping or a file can change without an event; FI_REGCACHE_SHARED=always caches it if nobody "
               "truncates it, punches holes into it or detaches it while it is registered";
    case Watch::Refused:
        return "the kernel refuses to watch it: another userfaultfd has it, or it is a special or read-only shared mapping";
    case Watch::TooMany:
        return "the process has too many mappings; raise vm.max_map_count";
    }
    return "";
}

} // namespace regcache
