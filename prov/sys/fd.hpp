// SPDX-License-Identifier: BSD-2-Clause
// Who closes a file descriptor: its one owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace regcache {

class Fd {
public:
    Fd() noexcept = default;
    explicit Fd(int number) noexcept : number_(number) {}
    Fd(Fd &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Fd &operator=(Fd &&other) noexcept
    {
        std::swap(number_, other.number_);
        return *this;
    }
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd() { close(); }

    int number() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }
    void close() noexcept
    {
        if (number_ >= 0)
            ::close(std::exchange(number_, -1));
    }

private:
    int number_ = -1;
};

} // namespace regcache
