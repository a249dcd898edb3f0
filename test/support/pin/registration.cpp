// SPDX-License-Identifier: BSD-2-Clause
// One registration's pages (regions.hpp).
#include "objects.hpp"
#include "regions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rdma/fi_domain.h>

namespace pin {

bool writes_memory(std::uint64_t access) noexcept { return (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE)) != 0; }

namespace {

bool is_allowed(std::uint64_t access, Direction direction, Rights rights) noexcept
{
    if (rights == Rights::Any)
        return true;
    if (rights == Rights::Remote)
        return (access & (direction == Direction::Out ? FI_REMOTE_READ : FI_REMOTE_WRITE)) != 0;
    return direction == Direction::Out ? (access & (FI_SEND | FI_WRITE | FI_REMOTE_READ)) != 0 : writes_memory(access);
}

} // namespace

Registration::Registration(std::shared_ptr<Rings> rings, bool is_addressed_virtually) noexcept
    : rings_(std::move(rings)), is_addressed_virtually_(is_addressed_virtually), generation_(fork_generation())
{
}

Registration::~Registration()
{
    // The table of a ring is shared with the parent: a forked child would unpin the parent's pages.
    if (generation_ != fork_generation())
        return;
    for (const Piece &piece : pieces_)
        if (piece.slot.number >= 0)
            piece.slot.ring->unpin(piece.slot.number);
}

int Registration::pin(const iovec *iov, std::size_t count, bool is_written)
{
    iov_.assign(iov, iov + count);
    for (const iovec &range : iov_) {
        const auto *start = static_cast<const char *>(range.iov_base);
        for (std::size_t done = 0; done < range.iov_len;) {
            const std::size_t len = std::min(range.iov_len - done, Ring::kMaxLen);
            const int error = pin_piece(start + done, len, is_written);
            if (error)
                return error;
            done += len;
        }
    }
    return 0;
}

int Registration::pin_piece(const char *start, std::size_t len, bool is_written)
{
    pieces_.reserve(pieces_.size() + 1);
    Piece piece{start, len, {nullptr, -1}};
    int error = rings_->pin(start, len, piece.slot);
    if ((error == -EFAULT || error == -EOPNOTSUPP) && !is_written) {
        HeldPages pages;
        error = pages.hold(start, len);
        if (error == 0) {
            held_.push_back(std::move(pages));
            piece.slot = {nullptr, -1};
            asked.held_pages = 1;
        }
    }
    if (error == 0)
        pieces_.push_back(piece);
    return error;
}

ssize_t Registration::copy_piece(const Piece &piece, Direction direction, const char *address, char *buffer,
                                 std::size_t len) const
{
    if (piece.slot.number >= 0)
        return direction == Direction::Out ? piece.slot.ring->copy_out(piece.slot.number, address, buffer, len)
                                           : piece.slot.ring->copy_in(piece.slot.number, address, buffer, len);
    if (direction == Direction::In)
        return -EACCES;
    std::size_t before = 0;
    for (const Piece &other : pieces_) {
        if (&other == &piece)
            break;
        before += other.slot.number < 0;
    }
    return held_[before].copy_out(address, buffer, len);
}

ssize_t Registration::copy(Direction direction, Rights rights, const void *address, void *buffer, std::size_t len) const
{
    if (generation_ != fork_generation())
        return -EOPNOTSUPP;
    if (!is_allowed(asked.given_access, direction, rights))
        return -EACCES;
    const auto *wanted = static_cast<const char *>(address);
    // Look before copying: a range that ends outside moves nothing.
    std::size_t found = 0;
    for (const bool is_copying : {false, true}) {
        found = 0;
        for (const Piece &piece : pieces_) {
            const char *next = wanted + found;
            if (found == len || next < piece.start || next >= piece.start + piece.len)
                continue;
            const std::size_t now = std::min(len - found, static_cast<std::size_t>(piece.start + piece.len - next));
            if (is_copying) {
                const ssize_t copied = copy_piece(piece, direction, next, static_cast<char *>(buffer) + found, now);
                if (copied < 0)
                    return copied;
            }
            found += now;
        }
        if (found != len)
            return -EFAULT;
    }
    return static_cast<ssize_t>(len);
}

const void *Registration::local_address(std::uint64_t remote_address) const noexcept
{
    if (is_addressed_virtually_)
        return reinterpret_cast<const void *>(remote_address);
    if (remote_address < asked.offset)
        return nullptr;
    std::uint64_t left = remote_address - asked.offset;
    for (const iovec &range : iov_) {
        if (left < range.iov_len)
            return static_cast<const char *>(range.iov_base) + left;
        left -= range.iov_len;
    }
    return nullptr;
}

} // namespace pin
