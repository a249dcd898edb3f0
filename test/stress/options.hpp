// SPDX-License-Identifier: BSD-2-Clause
// How a stress program is started: "PROGRAM [SEED]", and REGCACHE_TEST_LONG=1 for its long form. Doesn't know what it does.
#pragma once

#include "support/base.hpp"
#include "support/skip.hpp"

#include "sys/error.hpp"
#include "sys/log.hpp"
#include "vm/userfaultfd.hpp"

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>

namespace regcache::test {

struct Options {
    std::uint64_t seed = 0;
    bool is_long = false;
};

// When a program that hangs is ended: before test/run does it, and says less.
inline constexpr unsigned kLimitS = 280;

// Prints the seed, so that a failure can be tried again with it. Which thread comes when isn't in the seed.
inline Options read_options(const char *name, int argc, char **argv)
{
    Options options;
    const char *wants_long = std::getenv("REGCACHE_TEST_LONG");
    options.is_long = wants_long && std::string_view(wants_long) == "1";
    options.seed = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : std::random_device{}();
    std::printf("%s: seed %llu, %s form\n", name, static_cast<unsigned long long>(options.seed),
                options.is_long ? "long" : "short");
    std::fflush(stdout);
    set_log_sink([](LogLevel, const char *line) { std::fprintf(stderr, "log: %s\n", line); });
    return options;
}

// Failures are counted, not thrown: they come from any thread, and the first one shouldn't hide the others.
class Failures {
public:
    // Prints the first few.
    [[gnu::format(printf, 2, 3)]] void add(const char *format, ...)
    {
        va_list arguments;
        va_start(arguments, format);
        print(format, arguments);
        va_end(arguments);
    }
    [[gnu::format(printf, 3, 4)]] void unless(bool is_good, const char *format, ...)
    {
        if (is_good)
            return;
        va_list arguments;
        va_start(arguments, format);
        print(format, arguments);
        va_end(arguments);
    }
    // What main returns.
    int status() const noexcept { return count_.load() == 0 ? 0 : 1; }

private:
    [[gnu::format(printf, 2, 0)]] void print(const char *format, va_list arguments)
    {
        if (count_.fetch_add(1) >= 20)
            return;
        char line[512];
        std::vsnprintf(line, sizeof line, format, arguments);
        std::fprintf(stderr, "FAILED: %s\n", line);
    }

    std::atomic<unsigned> count_{0};
};

using Random = std::mt19937_64;

inline std::size_t below(Random &random, std::size_t limit) { return random() % limit; }
inline bool one_in(Random &random, unsigned n) { return random() % n == 0; }

// For loops that do as much as they can in a while, in place of a number that a loaded machine may not reach.
class Until {
public:
    explicit Until(unsigned milliseconds) : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds)) {}
    bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

private:
    std::chrono::steady_clock::time_point end_;
};

inline std::shared_ptr<Userfaultfd> userfaultfd_or_skip()
{
    try {
        return std::make_shared<Userfaultfd>(false);
    } catch (const Error &error) {
        skip_program(error.what());
    }
}

} // namespace regcache::test
