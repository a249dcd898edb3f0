// SPDX-License-Identifier: BSD-2-Clause
// Does a cache do what its reference does, over many random sequences of operations? "random_sequences SEED NUMBER" plays
// one of them alone and tells its steps.
#include "fuzz/cache_body.hpp"
#include "stress/options.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <unistd.h>
#include <vector>

using namespace regcache::test;

namespace {

std::vector<std::uint8_t> sequence(std::uint64_t seed, std::uint64_t number)
{
    Random random(seed * 1'000'003 + number);
    std::vector<std::uint8_t> bytes(50 + below(random, 1500));
    for (std::uint8_t &byte : bytes)
        byte = static_cast<std::uint8_t>(random());
    return bytes;
}

// Where a failure leaves its trace.
Options options;
std::uint64_t number_now = 0;

void say_which(int)
{
    char line[160];
    const int length = std::snprintf(line, sizeof line, "it was sequence %llu; to see its steps: random_sequences %llu %llu\n",
                                     static_cast<unsigned long long>(number_now), static_cast<unsigned long long>(options.seed),
                                     static_cast<unsigned long long>(number_now));
    if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0)
        std::_Exit(1);
    std::signal(SIGABRT, SIG_DFL);
}

} // namespace

int main(int argc, char **argv)
{
    options = read_options("random_sequences", argc, argv);
    PlayOptions play;
    play.may_fork = sanitizer() == nullptr; // the keeper is a thread
    regcache::set_log_sink(nullptr);        // refusals are part of the game
    if (argc > 2) {
        play.tells_steps = true;
        const auto bytes = sequence(options.seed, std::strtoull(argv[2], nullptr, 0));
        play_on_cache(bytes.data(), bytes.size(), play);
        return 0;
    }
    const Watchdog watchdog("random_sequences", kLimitS / patience());
    std::signal(SIGABRT, say_which);
    const std::uint64_t most = options.is_long ? 2'000'000 : 20'000;
    const Until until(options.is_long ? 200'000 : 4'000);
    Played all;
    for (; number_now < most && !until.is_over(); ++number_now) {
        const auto bytes = sequence(options.seed, number_now);
        all += play_on_cache(bytes.data(), bytes.size(), play);
    }
    std::printf("%llu sequences, %s\n", static_cast<unsigned long long>(number_now), text_of(all).c_str());
    return 0;
}
