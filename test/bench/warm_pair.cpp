// SPDX-License-Identifier: BSD-2-Clause
// What a warm fi_mr_reg+fi_close costs through the cache, beside the system call that confirms it and beside registering
// below. Every figure is a ratio of two medians that were measured in turn, in this run.
#include "support/base.hpp"
#include "support/fabric.hpp"
#include "support/pin/pin.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace regcache::test;

constexpr int kSkip = 77;
constexpr int kRounds = 201;

double seconds_now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Nanoseconds for one of `count` runs of `body`.
template <class Body>
double time_ns(int count, Body &&body)
{
    const double begin = seconds_now();
    for (int i = 0; i < count; ++i)
        body();
    return (seconds_now() - begin) * 1e9 / count;
}

double at(std::vector<double> values, double part)
{
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// Measures a and b in turn and prints median(a), median(b) and the ratio a/b with its quartiles. Gives the median ratio.
template <class A, class B>
double compare(const char *a_name, int a_count, A &&a, const char *b_name, int b_count, B &&b)
{
    std::vector<double> a_ns, b_ns, ratio;
    for (int round = 0; round < kRounds; ++round) {
        a_ns.push_back(time_ns(a_count, a));
        b_ns.push_back(time_ns(b_count, b));
        ratio.push_back(a_ns.back() / b_ns.back());
    }
    std::printf("%-34s %9.0f ns   %-34s %9.0f ns   ratio %7.2f (%.2f to %.2f)\n", a_name, at(a_ns, 0.5), b_name,
                at(b_ns, 0.5), at(ratio, 0.5), at(ratio, 0.25), at(ratio, 0.75));
    return at(ratio, 0.5);
}

// A userfaultfd of the bench's own, for the bare system call.
int open_userfaultfd()
{
    const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */));
    uffdio_api api{};
    api.api = UFFD_API;
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 ? fd : -1;
}

Wish through_cache()
{
    Wish wish;
    wish.provider = "regcache";
    wish.lower = "pin";
    return wish;
}

void pair(Card &card, void *buffer, std::size_t bytes)
{
    fid_mr *region = nullptr;
    if (fi_mr_reg(card.domain(), buffer, bytes, kLocalRights, 0, 0, 0, &region, nullptr) != 0 ||
        fi_close(&region->fid) != 0) {
        std::fprintf(stderr, "registering failed\n");
        std::exit(1);
    }
}

bool holds(const char *what, double value, const char *sense, double bound)
{
    const bool is_right = *sense == '<' ? value <= bound : value >= bound;
    std::printf("%s: %.2f, must be %s %.0f: %s\n", what, value, *sense == '<' ? "at most" : "at least", bound,
                is_right ? "holds" : "FAILS");
    return is_right;
}

} // namespace

int main()
{
    if (sanitizer()) {
        std::printf("skipped: a sanitizer's checks cost more than what is measured\n");
        return kSkip;
    }
    char why[256];
    const pin_ops *const pin = pin_find();
    if (!pin || pin->unusable(why, sizeof why)) {
        std::printf("skipped: %s\n", pin ? why : "the pin provider isn't there");
        return kSkip;
    }
    const int uffd = open_userfaultfd();
    if (uffd < 0) {
        std::printf("skipped: userfaultfd can't be opened: %s\n", std::strerror(errno));
        return kSkip;
    }
    setenv("FI_REGCACHE_SOURCE", "userfaultfd", 1);

    constexpr std::size_t kMost = std::size_t{1} << 20;
    void *const buffer = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(buffer, 1, kMost);
    Card cached(through_cache());
    Card bare{Wish{}};

    const auto warm_64k = [&] { pair(cached, buffer, 64 << 10); };
    const auto warm_1m = [&] { pair(cached, buffer, kMost); };
    const auto confirm = [&] {
        uffdio_writeprotect question{};
        ioctl(uffd, UFFDIO_WRITEPROTECT, &question);
    };
    const auto pin_64k = [&] { pair(bare, buffer, 64 << 10); };
    const auto pin_1m = [&] { pair(bare, buffer, kMost); };
    warm_1m();
    warm_64k();

    const double over_confirm = compare("warm pair, 64 KiB", 200, warm_64k, "confirm (system call)", 200, confirm);
    const double gain_64k = compare("register and close 64 KiB (pin)", 40, pin_64k, "warm pair, 64 KiB", 40, warm_64k);
    const double gain_1m = compare("register and close 1 MiB (pin)", 10, pin_1m, "warm pair, 1 MiB", 10, warm_1m);

    bool is_good = holds("a warm pair over the bare confirm call", over_confirm, "<=", 2);
    is_good &= holds("gain at 64 KiB", gain_64k, ">=", 4);
    is_good &= holds("gain at 1 MiB", gain_1m, ">=", 30);
    close(uffd);
    return is_good ? 0 : 1;
}
