// SPDX-License-Identifier: BSD-2-Clause
// Waits for what another thread will do, with a bound that only a hang reaches.
#pragma once

#include "support/base.hpp"

#include <chrono>
#include <thread>

namespace regcache::test {

// False when `question` isn't true after a minute.
template <class Question>
bool eventually(Question question)
{
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60 * patience());
    while (!question()) {
        if (std::chrono::steady_clock::now() > limit)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

} // namespace regcache::test
