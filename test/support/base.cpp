// SPDX-License-Identifier: BSD-2-Clause
// What this process holds (base.hpp).
#include "support/base.hpp"

#include <dirent.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace regcache::test {

namespace {

template <class Question>
bool becomes_true(Question question)
{
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30 * patience());
    while (!question()) {
        if (std::chrono::steady_clock::now() > limit)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

unsigned count_descriptors()
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        throw std::runtime_error("/proc/self/fd can't be read");
    unsigned count = 0;
    while (const dirent *entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; // the folder itself
}

} // namespace

const char *sanitizer() noexcept
{
#if defined(__SANITIZE_ADDRESS__)
    return "address";
#elif defined(__SANITIZE_THREAD__)
    return "thread";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return "address";
#elif __has_feature(thread_sanitizer)
    return "thread";
#else
    return nullptr;
#endif
#else
    return nullptr;
#endif
}

unsigned patience() noexcept { return sanitizer() ? 6 : 1; }

Base measure_base()
{
    Base base{};
    std::ifstream status("/proc/self/status");
    if (!status)
        throw std::runtime_error("/proc/self/status can't be read");
    for (std::string line; std::getline(status, line);) {
        std::istringstream words(line);
        std::string name;
        std::size_t value = 0;
        words >> name >> value;
        if (name == "VmPin:")
            base.pinned_kib = value;
        else if (name == "VmRSS:")
            base.resident_kib = value;
        else if (name == "Threads:")
            base.threads = static_cast<unsigned>(value);
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        ++base.mappings;
    maps.close();
    status.close();
    base.descriptors = count_descriptors();
    return base;
}

bool is_back_at_base(const Base &before)
{
    Base now{};
    const bool is_back = becomes_true([&] {
        now = measure_base();
        return now.pinned_kib <= before.pinned_kib && now.threads <= before.threads && now.descriptors <= before.descriptors;
    });
    if (!is_back)
        std::fprintf(stderr, "not back at base: before %s; now %s\n", text_of(before).c_str(), text_of(now).c_str());
    return is_back;
}

bool is_pinned_back_at(std::size_t pinned_kib)
{
    std::size_t now = 0;
    const bool is_back = becomes_true([&] {
        now = measure_base().pinned_kib;
        return now <= pinned_kib;
    });
    if (!is_back)
        std::fprintf(stderr, "%zu KiB stay pinned; %zu were expected\n", now, pinned_kib);
    return is_back;
}

std::string text_of(const Base &base)
{
    return std::to_string(base.pinned_kib) + " KiB pinned, " + std::to_string(base.threads) + " threads, " +
           std::to_string(base.descriptors) + " descriptors, " + std::to_string(base.resident_kib) + " KiB resident, " +
           std::to_string(base.mappings) + " mappings";
}

} // namespace regcache::test
