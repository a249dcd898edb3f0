// SPDX-License-Identifier: BSD-2-Clause
// What a domain is told by the user's parameters. Doesn't know where they come from.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace regcache {

struct Settings {
    std::string source = "auto";
    std::optional<std::size_t> max_count; // absent: derived from the device
    std::optional<std::size_t> max_bytes; // absent: derived from the machine
    bool caches_shared = false;
    bool keeps_remote_keys = true;
    bool prints_statistics = false;
};

} // namespace regcache
