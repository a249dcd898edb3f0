// SPDX-License-Identifier: BSD-2-Clause
// Where completions, events and addresses are kept: completion queues, event queues, counters, address vectors, poll sets.
#pragma once

#include "objects.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <string>
#include <vector>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

namespace pin {

// A negative timeout means "for ever"; here no longer than 24 days.
std::chrono::milliseconds bounded(int timeout_ms) noexcept;

struct Cq final : fid_cq {
    using C = fid_cq;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_CQ; }
    Cq(const fi_cq_attr *attr, void *context);
    int close() { return objects().remove(&fid); }

    void post(const fi_cq_tagged_entry &entry);
    ssize_t read(void *buffer, std::size_t count);
    ssize_t readfrom(void *buffer, std::size_t count, fi_addr_t *source);
    ssize_t readerr(fi_cq_err_entry *entry, std::uint64_t flags);
    ssize_t sread(void *buffer, std::size_t count, const void *condition, int timeout_ms);
    ssize_t sreadfrom(void *buffer, std::size_t count, fi_addr_t *source, const void *condition, int timeout_ms);
    int signal();

private:
    std::size_t entry_size_;
    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<fi_cq_tagged_entry> entries_;
    bool is_signalled_ = false;
};

struct Eq final : fid_eq {
    using C = fid_eq;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_EQ; }
    explicit Eq(void *context);
    int close() { return objects().remove(&fid); }

    void post(std::uint32_t event, const fi_eq_entry &entry);
    ssize_t read(std::uint32_t *event, void *buffer, std::size_t len, std::uint64_t flags);
    ssize_t readerr(fi_eq_err_entry *entry, std::uint64_t flags);
    ssize_t write(std::uint32_t event, const void *buffer, std::size_t len, std::uint64_t flags);
    ssize_t sread(std::uint32_t *event, void *buffer, std::size_t len, int timeout_ms, std::uint64_t flags);

private:
    struct Event {
        std::uint32_t event;
        std::string bytes;
    };
    ssize_t take(std::uint32_t *event, void *buffer, std::size_t len, std::uint64_t flags);

    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<Event> events_;
};

struct Counter final : fid_cntr {
    using C = fid_cntr;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_CNTR; }
    explicit Counter(void *context);
    int close() { return objects().remove(&fid); }

    std::uint64_t read();
    std::uint64_t readerr();
    int add(std::uint64_t value);
    int set(std::uint64_t value);
    int adderr(std::uint64_t value);
    int seterr(std::uint64_t value);
    int wait(std::uint64_t threshold, int timeout_ms);

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t value_ = 0;
    std::uint64_t errors_ = 0;
};

struct Av final : fid_av {
    using C = fid_av;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_AV; }
    explicit Av(void *context);
    int close() { return objects().remove(&fid); }
    int bind(struct fid *other, std::uint64_t flags);
    int insert(const void *address, std::size_t count, fi_addr_t *found, std::uint64_t flags, void *context);
    int remove(fi_addr_t *address, std::size_t count, std::uint64_t flags);
    int lookup(fi_addr_t address, void *buffer, std::size_t *len);

private:
    std::mutex mutex_;
    fi_addr_t next_ = 0;
};

struct Poll final : fid_poll {
    using C = fid_poll;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_POLL; }
    Poll();
    int close();
    int poll(void **contexts, int count);
    int add(struct fid *event_fid, std::uint64_t flags);
    int remove(struct fid *event_fid, std::uint64_t flags);

private:
    std::mutex mutex_;
    std::vector<struct fid *> members_;
};

} // namespace pin
