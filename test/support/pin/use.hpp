// SPDX-License-Identifier: BSD-2-Clause
// How a Criterion test comes to the pin provider's calls (pin.h): TestSuite(name, .init = regcache::test::need_pin).
#pragma once

#include "support/pin/pin.h"
#include "support/skip.hpp"

namespace regcache::test {

// After need_pin().
inline const pin_ops *pin = nullptr;

// Finds pin and takes back all orders; fails the test when libfabric doesn't load it, skips it where nothing can be pinned.
inline void need_pin()
{
    pin = pin_find();
    cr_assert(pin, "libfabric doesn't load libpin-fi.so from FI_PROVIDER_PATH");
    char why[256];
    if (pin->unusable(why, sizeof(why)))
        skip(why);
    pin->reset();
}

inline pin_counters pin_count()
{
    pin_counters counters;
    pin->counters(&counters);
    return counters;
}

} // namespace regcache::test
