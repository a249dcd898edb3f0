// SPDX-License-Identifier: BSD-2-Clause
// Asks the node's service for an event queue of this process.
#pragma once

#include "sys/fd.hpp"

#include <vector>

namespace regcache {

struct Served {
    Fd queue;             // the map behind the queue
    std::vector<Fd> held; // to be kept: what keeps the program attached, even without the service, and the connection
};

// Throws Error with the reason: no service, a refusal, an answer that doesn't come within a second. The socket is
// /run/regcached/socket, or what REGCACHED_SOCKET names.
Served ask_service();

} // namespace regcache
