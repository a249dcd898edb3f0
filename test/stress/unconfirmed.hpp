// SPDX-License-Identifier: BSD-2-Clause
// An event source without its confirmation: it tells what was read, and doesn't ask whether there is more on its way. For
// controls: a test of reuse that finds nothing wrong with this one sees nothing.
#pragma once

#include "vm/source.hpp"

#include <memory>
#include <utility>

namespace regcache::test {

class Unconfirmed final : public Source {
public:
    explicit Unconfirmed(std::shared_ptr<Source> inner) noexcept : inner_(std::move(inner)) {}

    const char *name() const noexcept override { return "unconfirmed"; }
    Watch watch(WatchedRange &watched) noexcept override { return inner_->watch(watched); }
    void unwatch(WatchedRange &watched) noexcept override { inner_->unwatch(watched); }
    std::uint64_t position() noexcept override { return inner_->end(); }
    EventQueue::Cursor end() const noexcept override { return inner_->end(); }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        return inner_->next(cursor, event);
    }
    unsigned look_every_ms() const noexcept override { return 5; } // nobody rings its bell

private:
    std::shared_ptr<Source> inner_;
};

} // namespace regcache::test
