// SPDX-License-Identifier: BSD-2-Clause
// The live registrations: their pages, keys and descriptors, and copies through them. Doesn't know their fids.
#pragma once

#include "held_pages.hpp"
#include "pin.h"
#include "ring.hpp"

#include <sys/uio.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace pin {

enum class Direction { Out, In };  // out of the registered pages, or into them
enum class Rights { Local, Remote, Any };

// Immutable once it is in the table, but for asked.key and asked.is_enabled, which the table's lock guards. Unpins when its last user lets go.
class Registration {
public:
    Registration(std::shared_ptr<Rings> rings, bool is_addressed_virtually) noexcept;
    ~Registration();
    Registration(const Registration &) = delete;

    // 0 or a negative errno. Read-only memory is held without pinning when `is_written` is false.
    int pin(const iovec *iov, std::size_t count, bool is_written);

    // len or a negative errno (pin.h).
    ssize_t copy(Direction direction, Rights rights, const void *address, void *buffer, std::size_t len) const;
    // Where a remote address points to; nullptr outside.
    const void *local_address(std::uint64_t remote_address) const noexcept;

    pin_region asked{};

private:
    struct Piece {
        const char *start;
        std::size_t len;
        Rings::Slot slot; // number < 0: held
    };
    int pin_piece(const char *start, std::size_t len, bool is_written);
    ssize_t copy_piece(const Piece &piece, Direction direction, const char *address, char *buffer, std::size_t len) const;

    std::shared_ptr<Rings> rings_;
    std::vector<Piece> pieces_;
    std::vector<HeldPages> held_; // one a held piece, in order
    std::vector<iovec> iov_;
    bool is_addressed_virtually_;
    unsigned generation_;
};

// Any thread.
class Regions {
public:
    // 0, or -FI_ENOMEM when the script's limits would be passed: counts the registration in advance, until unreserve.
    int reserve(std::size_t len);
    void unreserve(std::size_t len) noexcept;

    // 0 or -FI_ENOKEY: the domain has a region of that key. The key is taken until release_key.
    int take_key(unsigned domain, std::uint64_t requested);
    std::uint64_t choose_key(unsigned domain);
    void release_key(unsigned domain, std::uint64_t key, bool is_chosen) noexcept;

    // Gives the descriptor. The key isn't known to peers until publish_key.
    void *insert(std::shared_ptr<Registration> registration);
    void publish_key(void *desc, std::uint64_t key);
    // Forgets it; the pages are unpinned when the returned pointer (and no reader) is left.
    std::shared_ptr<Registration> erase(void *desc) noexcept;

    std::shared_ptr<Registration> find(void *desc);
    // 0, -ENOKEY or -ENOTUNIQ.
    int find_key(std::uint64_t key, std::shared_ptr<Registration> &registration);
    // Copies of what was asked for; the same errors (-EINVAL for a descriptor).
    int look(void *desc, pin_region &region);
    int look_key(std::uint64_t key, pin_region &region);
    std::vector<pin_region> all();

    void count_asked() noexcept { ++asked_; }
    void count_refused() noexcept { ++refused_; }
    void count_refreshed() noexcept { ++refreshed_; }
    void count_copy(Direction direction) noexcept { ++(direction == Direction::Out ? reads_ : writes_); }
    void fill(pin_counters &counters);
    void reset_counters();
    void bury(); // frees what is empty; the library is about to go

    std::mutex &mutex() noexcept { return mutex_; } // for the fork handlers

private:
    int find_key_locked(std::uint64_t key, std::shared_ptr<Registration> &registration) const;

    std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<Registration>> by_desc_;
    std::unordered_multimap<std::uint64_t, std::shared_ptr<Registration>> by_key_;
    std::set<std::pair<std::uint64_t, unsigned>> taken_keys_; // with the domain's number
    std::set<std::uint64_t> closed_keys_;
    std::uint64_t next_desc_ = 1;
    std::uint64_t next_key_ = 1;
    std::uint64_t live_ = 0, bytes_ = 0, most_live_ = 0, most_bytes_ = 0;
    std::uint64_t registered_ = 0, deregistered_ = 0, held_ = 0;
    std::atomic<std::uint64_t> asked_{0}, refused_{0}, refreshed_{0}, reads_{0}, writes_{0};
};

Regions &regions() noexcept;

// A place within the limits and a key, for one registration. Gives them back at its end.
class Claim {
public:
    Claim() noexcept = default;
    Claim(Claim &&other) noexcept { swap(other); }
    Claim &operator=(Claim &&other) noexcept
    {
        swap(other);
        return *this;
    }
    ~Claim() { give_back(); }

    // 0, -FI_ENOMEM (limits) or -FI_ENOKEY; then nothing is taken.
    int take(unsigned domain, std::size_t len, std::uint64_t requested_key, bool is_key_chosen);
    void give_back() noexcept;
    std::uint64_t key() const noexcept { return key_; }

private:
    void swap(Claim &other) noexcept;

    bool is_taken_ = false;
    bool is_key_chosen_ = false;
    unsigned domain_ = 0;
    std::size_t len_ = 0;
    std::uint64_t key_ = 0;
};

// The rights that let pages be written, locally or by a peer.
bool writes_memory(std::uint64_t access) noexcept;

} // namespace pin
