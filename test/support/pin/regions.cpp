// SPDX-License-Identifier: BSD-2-Clause
// The table of live registrations (regions.hpp).
#include "regions.hpp"

#include "objects.hpp"
#include "script.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <rdma/fi_errno.h>

namespace pin {

namespace {

std::uint64_t number_of(void *desc) noexcept { return reinterpret_cast<std::uintptr_t>(desc); }

} // namespace

Regions &regions() noexcept
{
    return immortal<Regions>();
}

int Regions::reserve(std::size_t len)
{
    const auto [max_live, max_bytes] = script().limits();
    const std::lock_guard lock(mutex_);
    if ((max_live != 0 && live_ + 1 > max_live) || (max_bytes != 0 && bytes_ + len > max_bytes))
        return -FI_ENOMEM;
    ++live_;
    bytes_ += len;
    most_live_ = std::max(most_live_, live_);
    most_bytes_ = std::max(most_bytes_, bytes_);
    return 0;
}

void Regions::unreserve(std::size_t len) noexcept
{
    const std::lock_guard lock(mutex_);
    --live_;
    bytes_ -= len;
}

int Regions::take_key(unsigned domain, std::uint64_t requested)
{
    const std::lock_guard lock(mutex_);
    return taken_keys_.emplace(requested, domain).second ? 0 : -FI_ENOKEY;
}

std::uint64_t Regions::choose_key(unsigned domain)
{
    const bool is_lowest = script().keys() == PIN_KEYS_LOWEST;
    const std::lock_guard lock(mutex_);
    std::uint64_t key = next_key_;
    if (is_lowest && !closed_keys_.empty()) {
        key = *closed_keys_.begin();
        closed_keys_.erase(closed_keys_.begin());
    } else {
        ++next_key_;
    }
    taken_keys_.emplace(key, domain);
    return key;
}

void Regions::release_key(unsigned domain, std::uint64_t key, bool is_chosen) noexcept
{
    const bool is_lowest = script().keys() == PIN_KEYS_LOWEST;
    const std::lock_guard lock(mutex_);
    taken_keys_.erase({key, domain});
    if (is_chosen && is_lowest)
        closed_keys_.insert(key);
}

void *Regions::insert(std::shared_ptr<Registration> registration)
{
    const std::lock_guard lock(mutex_);
    // A number, never used twice, that looks like nothing one may follow.
    void *desc = reinterpret_cast<void *>(next_desc_++ << 12 | 0x5d1);
    registration->asked.desc = desc;
    held_ += registration->asked.held_pages != 0;
    ++registered_;
    by_desc_.emplace(number_of(desc), std::move(registration));
    return desc;
}

void Regions::publish_key(void *desc, std::uint64_t key)
{
    const std::lock_guard lock(mutex_);
    const auto at = by_desc_.find(number_of(desc));
    if (at == by_desc_.end())
        return;
    at->second->asked.key = key;
    at->second->asked.is_enabled = 1;
    by_key_.emplace(key, at->second);
}

std::shared_ptr<Registration> Regions::erase(void *desc) noexcept
{
    const std::lock_guard lock(mutex_);
    const auto at = by_desc_.find(number_of(desc));
    if (at == by_desc_.end())
        return nullptr;
    std::shared_ptr<Registration> registration = std::move(at->second);
    by_desc_.erase(at);
    const auto [begin, end] = by_key_.equal_range(registration->asked.key);
    const auto named = std::find_if(begin, end, [&](const auto &entry) { return entry.second == registration; });
    if (named != end)
        by_key_.erase(named);
    ++deregistered_;
    return registration;
}

std::shared_ptr<Registration> Regions::find(void *desc)
{
    const std::lock_guard lock(mutex_);
    const auto at = by_desc_.find(number_of(desc));
    return at == by_desc_.end() ? nullptr : at->second;
}

int Regions::find_key_locked(std::uint64_t key, std::shared_ptr<Registration> &registration) const
{
    const auto [begin, end] = by_key_.equal_range(key);
    if (begin == end)
        return -ENOKEY;
    if (std::next(begin) != end)
        return -ENOTUNIQ;
    registration = begin->second;
    return 0;
}

int Regions::find_key(std::uint64_t key, std::shared_ptr<Registration> &registration)
{
    const std::lock_guard lock(mutex_);
    return find_key_locked(key, registration);
}

int Regions::look(void *desc, pin_region &region)
{
    const std::lock_guard lock(mutex_);
    const auto at = by_desc_.find(number_of(desc));
    if (at == by_desc_.end())
        return -EINVAL;
    region = at->second->asked;
    return 0;
}

int Regions::look_key(std::uint64_t key, pin_region &region)
{
    std::shared_ptr<Registration> registration; // let go of after the lock: its end may unpin
    const std::lock_guard lock(mutex_);
    const int error = find_key_locked(key, registration);
    if (error == 0)
        region = registration->asked;
    return error;
}

std::vector<pin_region> Regions::all()
{
    const std::lock_guard lock(mutex_);
    std::vector<pin_region> copies;
    copies.reserve(by_desc_.size());
    for (const auto &[number, registration] : by_desc_)
        copies.push_back(registration->asked);
    return copies;
}

void Regions::fill(pin_counters &counters)
{
    const std::lock_guard lock(mutex_);
    counters.asked = asked_;
    counters.registered = registered_;
    counters.refused = refused_;
    counters.deregistered = deregistered_;
    counters.live = live_;
    counters.bytes = bytes_;
    counters.most_live = most_live_;
    counters.most_bytes = most_bytes_;
    counters.held = held_;
    counters.refreshed = refreshed_;
    counters.reads = reads_;
    counters.writes = writes_;
}

void Regions::reset_counters()
{
    const std::lock_guard lock(mutex_);
    asked_ = refused_ = refreshed_ = reads_ = writes_ = 0;
    registered_ = deregistered_ = held_ = 0;
    most_live_ = live_;
    most_bytes_ = bytes_;
}

void Regions::bury()
{
    const std::lock_guard lock(mutex_);
    decltype(closed_keys_)().swap(closed_keys_);
    if (by_key_.empty())
        decltype(by_key_)().swap(by_key_);
}

int Claim::take(unsigned domain, std::size_t len, std::uint64_t requested_key, bool is_key_chosen)
{
    if (const int error = regions().reserve(len))
        return error;
    const int error = is_key_chosen ? 0 : regions().take_key(domain, requested_key);
    if (error) {
        regions().unreserve(len);
        return error;
    }
    is_taken_ = true;
    is_key_chosen_ = is_key_chosen;
    domain_ = domain;
    len_ = len;
    key_ = is_key_chosen ? regions().choose_key(domain) : requested_key;
    return 0;
}

void Claim::give_back() noexcept
{
    if (!std::exchange(is_taken_, false))
        return;
    regions().release_key(domain_, key_, is_key_chosen_);
    regions().unreserve(len_);
}

void Claim::swap(Claim &other) noexcept
{
    std::swap(is_taken_, other.is_taken_);
    std::swap(is_key_chosen_, other.is_key_chosen_);
    std::swap(domain_, other.domain_);
    std::swap(len_, other.len_);
    std::swap(key_, other.key_);
}

} // namespace pin
