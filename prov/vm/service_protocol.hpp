// SPDX-License-Identifier: BSD-2-Clause
// What a process and the node's service say to each other, over a Unix socket of sequenced packets.
//
//   client                                    service
//   Hello                               -->
//                                       <--   Answer, with descriptors: the queue's map, then what keeps the program attached
//   (keeps the connection)                    (drops the queue when the connection ends)
#pragma once

#include <cstdint>

namespace regcache::service {

inline constexpr char kSocket[] = "/run/regcached/socket";
inline constexpr std::uint32_t kMagic = 0x72656763;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr unsigned kMostDescriptors = 8;

struct Hello {
    std::uint32_t magic = kMagic;
    std::uint32_t version = kVersion;
};

struct Answer {
    std::uint32_t magic = kMagic;
    std::uint32_t version = kVersion;
    std::int32_t error = 0; // 0, or an errno; then there are no descriptors
    std::uint32_t descriptors = 0;
    char why[96] = "";      // for the user, when there is an error
};

} // namespace regcache::service
