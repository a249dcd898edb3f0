// SPDX-License-Identifier: BSD-2-Clause
// Puts names together and takes them apart.
#include "ofi/names.hpp"

#include <strings.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace regcache {

std::string upper_fabric_name(std::string_view lower_provider, const char *lower_fabric)
{
    return std::string(lower_provider) + ":" + (lower_fabric ? lower_fabric : "");
}

LowerName lower_name(const char *upper_fabric)
{
    const char *const colon = upper_fabric ? std::strchr(upper_fabric, ':') : nullptr;
    if (!colon)
        return {};
    return {std::string(upper_fabric, colon), colon + 1};
}

bool is_same_name(std::string_view a, std::string_view b) noexcept
{
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::vector<std::string> split(std::string_view text, char separator)
{
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = text.find(separator);
        if (end != 0)
            parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos)
            break;
        text.remove_prefix(end + 1);
    }
    return parts;
}

void replace(char *&text, const std::string &by)
{
    char *const copy = strdup(by.c_str());
    if (!copy)
        throw std::bad_alloc();
    std::free(text);
    text = copy;
}

} // namespace regcache
