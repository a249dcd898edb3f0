// SPDX-License-Identifier: BSD-2-Clause
// How pin misbehaves, as a test or the environment ordered it. Doesn't do it.
#pragma once

#include "pin.h"

#include <mutex>
#include <utility>

namespace pin {

// What the environment says: FI_PIN_* (README.md). Reads it anew each time.
struct Environment {
    pin_rule fail_register{0, 0, 0};
    pin_rule fail_deregister{0, 0, 0};
    std::uint64_t max_count = 0;
    std::uint64_t max_size = 0;
    pin_keys keys = PIN_KEYS_FRESH;
    bool is_write_demanded = false;
};
Environment read_environment();

// Any thread.
class Script {
public:
    Script() { reset(); }
    void reset(); // to what the environment says

    void fail_register(const pin_rule *rule);
    void fail_deregister(const pin_rule *rule);
    void limit(std::uint64_t max_live, std::uint64_t max_bytes);
    void keys(pin_keys which);
    void narrow_access(std::uint64_t access);
    void demand_write(bool is_demanded);
    void set_hook(pin_hook hook, void *argument);

    // Counts one call; its ordered error (negative) or 0.
    int next_register();
    int next_deregister();
    std::pair<std::uint64_t, std::uint64_t> limits();
    pin_keys keys();
    std::uint64_t allowed_access();
    bool is_write_demanded();
    // 0 or a negative error; calls the hook with no lock held.
    int call_hook(pin_moment moment, const void *start, std::size_t len);

    std::mutex &mutex() noexcept { return mutex_; } // for the fork handlers

private:
    struct Count {
        pin_rule rule{0, 0, 0};
        std::uint64_t calls = 0;
        int next();
    };

    std::mutex mutex_;
    Count register_;
    Count deregister_;
    std::uint64_t max_live_ = 0;
    std::uint64_t max_bytes_ = 0;
    pin_keys keys_ = PIN_KEYS_FRESH;
    std::uint64_t access_ = UINT64_MAX;
    bool is_write_demanded_ = false;
    pin_hook hook_ = nullptr;
    void *argument_ = nullptr;
};

Script &script();

} // namespace pin
