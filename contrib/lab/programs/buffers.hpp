// SPDX-License-Identifier: BSD-2-Clause
// Buffers whose memory stays or comes and goes, and what is written into them, so that a message of an earlier round, or of
// other pages, is seen.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace lab {

inline double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Kept: the same pages in every round. Freed: mapped and unmapped in each, with libc's calls. Raw: the same by system calls
// of the program's own. Reused: another thread unmaps, and this one takes the address as soon as the kernel gives it.
enum class Pages { Kept, Freed, Raw, Reused };

// A thread that unmaps what it is given; the giver doesn't wait for it to be told that it is done.
class Unmapper {
public:
    explicit Unmapper(std::size_t bytes) : bytes_(bytes), thread_([this] { run(); }) {}
    Unmapper(const Unmapper &) = delete;
    Unmapper &operator=(const Unmapper &) = delete;
    ~Unmapper()
    {
        give(this); // nobody's pages: the end
        thread_.join();
    }
    void give(void *pages)
    {
        while (void *const earlier = pages_.load())
            pages_.wait(earlier);
        pages_.store(pages);
        pages_.notify_all();
    }

private:
    void run()
    {
        for (;;) {
            pages_.wait(nullptr);
            void *const pages = pages_.load();
            if (pages == this)
                return;
            munmap(pages, bytes_);
            pages_.store(nullptr);
            pages_.notify_all();
        }
    }

    const std::size_t bytes_;
    std::atomic<void *> pages_{nullptr};
    std::thread thread_;
};

class Buffer {
public:
    Buffer(std::size_t bytes, Pages pages) : bytes_(bytes), pages_(pages), start_(map(nullptr, 0)) {}
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { munmap(start_, bytes_); }

    void *start() const { return start_; }

    // Other pages, or the same ones when they are kept; says how long giving back took, in microseconds.
    double renew(Unmapper &unmapper)
    {
        const double begin = now_us();
        double end = begin;
        switch (pages_) {
        case Pages::Kept:
            return 0;
        case Pages::Freed:
            munmap(start_, bytes_);
            end = now_us();
            start_ = map(start_, 0);
            break;
        case Pages::Raw:
            syscall(SYS_munmap, start_, bytes_);
            end = now_us();
            start_ = reinterpret_cast<void *>(syscall(SYS_mmap, start_, bytes_, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            break;
        case Pages::Reused:
            unmapper.give(start_);
            while (map(start_, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST)
                ;
            end = now_us();
            break;
        }
        if (start_ == MAP_FAILED)
            std::abort();
        return end - begin;
    }

    void fill(std::uint64_t seed)
    {
        each([seed](std::size_t at, std::uint64_t &word) { word = expected(seed, at); });
    }
    void clear()
    {
        each([](std::size_t, std::uint64_t &word) { word = 0; });
    }
    // Whether all that fill() of the peer has written is there.
    bool has(std::uint64_t seed)
    {
        bool same = true;
        each([&](std::size_t at, std::uint64_t &word) { same = same && word == expected(seed, at); });
        return same;
    }

private:
    // One word in 64 KiB, and the last one. A stale registration shows its earlier pages in all of them, and touching few
    // pages leaves little time between getting an address and sending from it.
    template <typename Visit> void each(Visit visit)
    {
        auto *const words = static_cast<std::uint64_t *>(start_);
        const std::size_t count = bytes_ / sizeof *words;
        for (std::size_t at = 0; at < count; at += 8192)
            visit(at, words[at]);
        visit(count - 1, words[count - 1]);
    }
    static std::uint64_t expected(std::uint64_t seed, std::size_t at)
    {
        std::uint64_t mix = (seed << 32 ^ at) * 0x9e3779b97f4a7c15u;
        return mix ^ mix >> 29;
    }
    void *map(void *where, int flags) const
    {
        return mmap(where, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    }

    const std::size_t bytes_;
    const Pages pages_;
    void *start_;
};

} // namespace lab
