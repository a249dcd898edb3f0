// SPDX-License-Identifier: BSD-2-Clause
// Which fids are pin's own (objects.hpp).
#include "objects.hpp"

#include <tuple>

namespace pin {

Objects &objects() noexcept
{
    return immortal<Objects>();
}

void Objects::add(fid *f, fid *parent, Destroy destroy)
{
    const std::lock_guard lock(mutex_);
    live_.emplace(f, Entry{parent, f->fclass, 0, destroy});
    const auto above = live_.find(parent);
    if (above != live_.end())
        ++above->second.needed_by;
}

int Objects::remove(fid *f)
{
    fid *oldest = nullptr;
    Destroy destroy_oldest = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto at = live_.find(f);
        if (at == live_.end()) {
            ++misuse_.double_closes;
            return -FI_EINVAL;
        }
        if (at->second.needed_by != 0)
            return -FI_EBUSY;
        graves_.emplace_back(f, at->second.destroy);
        dead_.insert(f);
        const auto above = live_.find(at->second.parent);
        if (above != live_.end())
            --above->second.needed_by;
        live_.erase(at);
        if (graves_.size() > kGraves) {
            std::tie(oldest, destroy_oldest) = graves_.front();
            graves_.pop_front();
            dead_.erase(oldest);
        }
    }
    if (oldest)
        destroy_oldest(oldest);
    return 0;
}

bool Objects::is_mine(const fid *f, IsClass is_class)
{
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(f);
    if (at != live_.end() && is_class(at->second.fclass))
        return true;
    if (dead_.count(f) != 0)
        ++misuse_.calls_after_close;
    else
        note_foreign(f);
    return false;
}

bool Objects::is_closed(const fid *f)
{
    const std::lock_guard lock(mutex_);
    if (dead_.count(f) == 0)
        return false;
    ++misuse_.double_closes;
    return true;
}

void Objects::note_foreign(const fid *f)
{
    ++misuse_.foreign_fids;
    misuse_.newest_foreign_class = f ? f->fclass : 0;
}

void Objects::hold(fid *f)
{
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(f);
    if (at != live_.end())
        ++at->second.needed_by;
}

void Objects::release(fid *f)
{
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(f);
    if (at != live_.end())
        --at->second.needed_by;
}

std::uint64_t Objects::live()
{
    const std::lock_guard lock(mutex_);
    return live_.size();
}

void Objects::bury()
{
    std::list<std::pair<fid *, Destroy>> graves;
    {
        const std::lock_guard lock(mutex_);
        graves.swap(graves_);
        decltype(dead_)().swap(dead_);
        if (live_.empty())
            decltype(live_)().swap(live_);
    }
    for (const auto &[f, destroy] : graves)
        destroy(f);
}

void Objects::forget_misuse() noexcept
{
    misuse_.foreign_fids = 0;
    misuse_.foreign_descs = 0;
    misuse_.double_closes = 0;
    misuse_.calls_after_close = 0;
    misuse_.calls_in_child = 0;
    misuse_.newest_foreign_class = 0;
}

} // namespace pin
