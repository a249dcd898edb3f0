// SPDX-License-Identifier: BSD-2-Clause
// Completion queues and counters (queues.hpp).
#include "ops.hpp"
#include "queues.hpp"

#include <chrono>
#include <climits>
#include <cstring>

namespace pin {

namespace {

constinit fi_ops cq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Cq>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = op<&Cq::read>,
    .readfrom = op<&Cq::readfrom>,
    .readerr = op<&Cq::readerr>,
    .sread = op<&Cq::sread>,
    .sreadfrom = op<&Cq::sreadfrom>,
    .signal = op<&Cq::signal>,
    .strerror = enosys,
};

constinit fi_ops counter_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Counter>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_cntr counter_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = op<&Counter::read>,
    .readerr = op<&Counter::readerr>,
    .add = op<&Counter::add>,
    .set = op<&Counter::set>,
    .wait = op<&Counter::wait>,
    .adderr = op<&Counter::adderr>,
    .seterr = op<&Counter::seterr>,
};

std::size_t size_of(fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_MSG:
        return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(fi_cq_tagged_entry);
    default:
        return sizeof(fi_cq_entry);
    }
}

} // namespace

std::chrono::milliseconds bounded(int timeout_ms) noexcept
{
    return std::chrono::milliseconds(timeout_ms < 0 ? INT_MAX : timeout_ms);
}

Cq::Cq(const fi_cq_attr *attr, void *context) : fid_cq{}, entry_size_(size_of(attr ? attr->format : FI_CQ_FORMAT_CONTEXT))
{
    fid = {FI_CLASS_CQ, context, &cq_fid_ops};
    ops = &cq_ops;
}

void Cq::post(const fi_cq_tagged_entry &entry)
{
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
    posted_.notify_all();
}

ssize_t Cq::read(void *buffer, std::size_t count) { return readfrom(buffer, count, nullptr); }

ssize_t Cq::readfrom(void *buffer, std::size_t count, fi_addr_t *source)
{
    const std::lock_guard lock(mutex_);
    std::size_t at = 0;
    // The formats are each other's beginnings, so the first bytes of the longest are any of them.
    for (; at < count && !entries_.empty(); ++at) {
        std::memcpy(static_cast<char *>(buffer) + at * entry_size_, &entries_.front(), entry_size_);
        if (source)
            source[at] = FI_ADDR_NOTAVAIL;
        entries_.pop_front();
    }
    return at == 0 ? -FI_EAGAIN : static_cast<ssize_t>(at);
}

ssize_t Cq::readerr(fi_cq_err_entry *, std::uint64_t) { return -FI_EAGAIN; }

ssize_t Cq::sread(void *buffer, std::size_t count, const void *condition, int timeout_ms)
{
    return sreadfrom(buffer, count, nullptr, condition, timeout_ms);
}

ssize_t Cq::sreadfrom(void *buffer, std::size_t count, fi_addr_t *source, const void *, int timeout_ms)
{
    {
        std::unique_lock lock(mutex_);
        posted_.wait_for(lock, bounded(timeout_ms), [&] { return !entries_.empty() || is_signalled_; });
        is_signalled_ = false;
    }
    return readfrom(buffer, count, source);
}

int Cq::signal()
{
    const std::lock_guard lock(mutex_);
    is_signalled_ = true;
    posted_.notify_all();
    return 0;
}

Counter::Counter(void *context) : fid_cntr{}
{
    fid = {FI_CLASS_CNTR, context, &counter_fid_ops};
    ops = &counter_ops;
}

std::uint64_t Counter::read()
{
    const std::lock_guard lock(mutex_);
    return value_;
}

std::uint64_t Counter::readerr()
{
    const std::lock_guard lock(mutex_);
    return errors_;
}

int Counter::add(std::uint64_t value)
{
    const std::lock_guard lock(mutex_);
    value_ += value;
    changed_.notify_all();
    return 0;
}

int Counter::set(std::uint64_t value)
{
    const std::lock_guard lock(mutex_);
    value_ = value;
    changed_.notify_all();
    return 0;
}

int Counter::adderr(std::uint64_t value)
{
    const std::lock_guard lock(mutex_);
    errors_ += value;
    changed_.notify_all();
    return 0;
}

int Counter::seterr(std::uint64_t value)
{
    const std::lock_guard lock(mutex_);
    errors_ = value;
    changed_.notify_all();
    return 0;
}

int Counter::wait(std::uint64_t threshold, int timeout_ms)
{
    std::unique_lock lock(mutex_);
    const std::uint64_t errors = errors_;
    changed_.wait_for(lock, bounded(timeout_ms), [&] { return value_ >= threshold || errors_ != errors; });
    if (errors_ != errors)
        return -FI_EAVAIL;
    return value_ >= threshold ? 0 : -FI_ETIMEDOUT;
}

} // namespace pin
