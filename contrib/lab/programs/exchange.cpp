// SPDX-License-Identifier: BSD-2-Clause
// Two processes send large messages there and back, in buffers that stay or come and go: how many were wrong, how long a
// round took, what giving memory back cost, and how much was pinned. The caches to compare are chosen by the environment.
//
//   exchange [-p PROVIDER] [-n NODE] [-b kept|freed|raw|reused] [-s BYTES,...] [-r ROUNDS] [-t SECONDS]
//
// One line for each size. Exit status 1 when a message was wrong.
#include "buffers.hpp"
#include "endpoint.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

namespace {

using lab::Buffer;
using lab::Pages;
using lab::now_us;

constexpr std::array<const char *, 4> kNames = {"kept", "freed", "raw", "reused"};

struct Options {
    std::string provider = "verbs;ofi_rxm";
    const char *node = "10.0.2.15";
    Pages pages = Pages::Kept;
    std::vector<std::size_t> sizes = {262144, 1048576};
    int rounds = 20;
    unsigned limit_s = 600;
};

struct Outcome {
    long wrong = 0, pinned_kib = 0;
    double roundtrip_us = 0, give_back_us = 0;
};

[[noreturn]] void usage()
{
    std::fprintf(stderr,
                 "usage: exchange [-p PROVIDER] [-n NODE] [-b kept|freed|raw|reused] [-s BYTES,...] [-r ROUNDS] [-t SECONDS]\n");
    std::exit(2);
}

Options read_options(int argc, char **argv)
{
    Options options;
    for (int got; (got = getopt(argc, argv, "p:n:b:s:r:t:")) != -1;) {
        const std::string value = optarg ? optarg : "";
        if (got == 'p') {
            options.provider = value;
        } else if (got == 'n') {
            options.node = optarg;
        } else if (got == 'b') {
            const auto *const found = std::find(kNames.begin(), kNames.end(), value);
            if (found == kNames.end())
                usage();
            options.pages = static_cast<Pages>(found - kNames.begin());
        } else if (got == 's') {
            options.sizes.clear();
            for (std::size_t at = 0; at < value.size(); at = std::min(value.find(',', at), value.size() - 1) + 1)
                options.sizes.push_back(std::strtoul(value.c_str() + at, nullptr, 10));
        } else if (got == 'r') {
            options.rounds = std::atoi(optarg);
        } else if (got == 't') {
            options.limit_s = static_cast<unsigned>(std::atoi(optarg));
        } else {
            usage();
        }
    }
    if (optind != argc || options.rounds < 1 || options.sizes.empty() ||
        std::any_of(options.sizes.begin(), options.sizes.end(), [](std::size_t bytes) { return bytes < 4096 || bytes % 8; }))
        usage();
    return options;
}

long pinned_kib()
{
    long kib = 0;
    if (std::FILE *const status = std::fopen("/proc/self/status", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, status) && std::sscanf(line, "VmPin: %ld", &kib) != 1)
            ;
        std::fclose(status);
    }
    return kib;
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// The first process begins each round, the second answers.
Outcome exchange(lab::Endpoint &endpoint, int socket, bool first, const Options &options, std::size_t bytes)
{
    lab::Unmapper unmapper(bytes);
    Buffer out(bytes, options.pages), in(bytes, options.pages);
    Outcome outcome;
    std::vector<double> roundtrips, given_back;
    const auto seed = [&](int round, bool of_first) { return static_cast<std::uint64_t>(2 * round + of_first) * 1024 + bytes % 1021; };
    for (int round = 0; round < options.rounds; ++round) {
        char ready = 'r';
        out.fill(seed(round, first));
        in.clear();
        if (first) {
            // Only now does the second one's receive stand.
            if (read(socket, &ready, 1) != 1)
                lab::give_up("the peer is gone", EPIPE);
            const double begin = now_us();
            endpoint.post_receive(in.start(), bytes);
            endpoint.post_send(out.start(), bytes);
            endpoint.wait_received();
            roundtrips.push_back(now_us() - begin);
        } else {
            endpoint.post_receive(in.start(), bytes);
            if (write(socket, &ready, 1) != 1)
                lab::give_up("the peer is gone", EPIPE);
            endpoint.wait_received();
            endpoint.post_send(out.start(), bytes);
        }
        endpoint.wait_sent();
        outcome.wrong += in.has(seed(round, !first)) ? 0 : 1;
        outcome.pinned_kib = std::max(outcome.pinned_kib, pinned_kib());
        given_back.push_back(out.renew(unmapper));
        given_back.push_back(in.renew(unmapper));
    }
    outcome.roundtrip_us = first ? median(roundtrips) : 0;
    outcome.give_back_us = median(given_back);
    return outcome;
}

int run(const Options &options, int socket, bool first)
{
    alarm(options.limit_s);
    lab::Endpoint endpoint(options.provider, options.node);
    endpoint.meet(socket);
    long wrong = 0;
    for (const std::size_t bytes : options.sizes) {
        Outcome own = exchange(endpoint, socket, first, options, bytes);
        Outcome other;
        if (write(socket, &own, sizeof own) != sizeof own || read(socket, &other, sizeof other) != sizeof other)
            lab::give_up("the peer is gone", EPIPE);
        wrong += own.wrong + other.wrong;
        if (first) {
            std::printf("exchange: buffers=%s bytes=%zu messages=%d wrong=%ld roundtrip_us=%.0f give_back_us=%.1f pinned_kib=%ld\n",
                        kNames[static_cast<std::size_t>(options.pages)], bytes, 2 * options.rounds, own.wrong + other.wrong,
                        own.roundtrip_us, own.give_back_us, std::max(own.pinned_kib, other.pinned_kib));
            std::fflush(stdout);
        }
    }
    return wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options(argc, argv);
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        lab::give_up("socketpair", errno);
    // Before libfabric knows anything: a provider need not live with fork here.
    const pid_t child = fork();
    if (child < 0)
        lab::give_up("fork", errno);
    close(sockets[child == 0 ? 0 : 1]);
    const int mine = run(options, sockets[child == 0 ? 1 : 0], child != 0);
    if (child == 0)
        return mine;
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        std::fprintf(stderr, "exchange: the second process ended by signal %d\n", WTERMSIG(status));
    return mine != 0 ? mine : WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
