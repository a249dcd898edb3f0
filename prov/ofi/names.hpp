// SPDX-License-Identifier: BSD-2-Clause
// How names tell which lower provider is meant: "tcp:127.0.0.0/8" is the fabric 127.0.0.0/8 of tcp. An application may
// copy an fi_info, and the way back to the lower provider survives in the fabric's name.
#pragma once

#include <rdma/fabric.h>

#include <string>
#include <string_view>
#include <vector>

namespace regcache {

inline constexpr char kProviderName[] = "regcache";

std::string upper_fabric_name(std::string_view lower_provider, const char *lower_fabric);

struct LowerName {
    std::string provider; // empty: the name isn't one of ours
    std::string fabric;
};
LowerName lower_name(const char *upper_fabric);

bool is_same_name(std::string_view a, std::string_view b) noexcept; // letters of both cases are the same, as in libfabric
std::vector<std::string> split(std::string_view text, char separator);

// Replaces a string of an fi_info, which free() ends. Throws bad_alloc.
void replace(char *&text, const std::string &by);

} // namespace regcache
