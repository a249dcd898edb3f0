// SPDX-License-Identifier: BSD-2-Clause
// How large a page of ordinary memory is.
#include "sys/range.hpp"

#include <unistd.h>

namespace regcache {

std::size_t page_size() noexcept
{
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

} // namespace regcache
