// SPDX-License-Identifier: BSD-2-Clause
// The domain object: the lower provider's behind ours, and the cache of its registrations. What may be cached is decided
// in domain_mr.cpp, what is forwarded is in domain.cpp.
#pragma once

#include "cache/cache.hpp"
#include "fid/fabric.hpp"
#include "fid/registrar.hpp"
#include "ofi/handle.hpp"
#include "sys/atomic.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>

namespace regcache {

// Any thread. Owns the lower domain and the cache; handles count themselves in and out, and keep it from being closed.
class Domain final : public fid_domain {
public:
    using C = fid_domain;

    // Opens the lower domain. Throws Error.
    Domain(Fabric &fabric, const fi_info &info, std::uint64_t flags, void *context);
    ~Domain();

    // Our object if `domain` is one, else nullptr.
    static Domain *of(fid_domain *domain) noexcept;
    // At the end of the process, before the library is unloaded: prints the statistics of the domains that are still open
    // and ends their threads.
    static void stop_all() noexcept;

    fid_domain *lower() const noexcept { return lower_.get(); }
    // The memory-registration mode that the lower provider is opened with when the application was handed `upper`.
    int lower_mr_mode(int upper) const noexcept
    {
        return keys_ == Registrar::Keys::Ours ? upper & ~FI_MR_PROV_KEY : upper;
    }

    // For handles.
    void release(Region &region) noexcept { cache_->release(&region); }
    int bind_cached(Region &region, struct fid *object, std::uint64_t flags) noexcept;
    int close_owned(fid_mr *lower) noexcept;
    void count_handle(int change) noexcept { handles_.add_ordered(change); }

    // fi_ops
    int close();
    int bind(struct fid *object, std::uint64_t flags) noexcept;
    int control(int command, void *argument) noexcept;
    // fi_ops_mr
    int reg(const void *buffer, std::size_t bytes, std::uint64_t access, std::uint64_t offset, std::uint64_t requested_key,
            std::uint64_t flags, fid_mr **region, void *context) noexcept;
    int regv(const iovec *pieces, std::size_t count, std::uint64_t access, std::uint64_t offset,
             std::uint64_t requested_key, std::uint64_t flags, fid_mr **region, void *context) noexcept;
    int regattr(const fi_mr_attr *attr, std::uint64_t flags, fid_mr **region) noexcept;
    // fi_ops_domain
    int open_av(fi_av_attr *attr, fid_av **av, void *context) noexcept;
    int open_cq(fi_cq_attr *attr, fid_cq **cq, void *context) noexcept;
    int open_endpoint(fi_info *info, fid_ep **endpoint, void *context);
    int open_endpoint2(fi_info *info, fid_ep **endpoint, std::uint64_t flags, void *context);
    int open_scalable_ep(fi_info *info, fid_ep **endpoint, void *context);
    int open_cntr(fi_cntr_attr *attr, fid_cntr **cntr, void *context) noexcept;
    int open_poll(fi_poll_attr *attr, fid_poll **poll) noexcept;
    int open_stx(fi_tx_attr *attr, fid_stx **stx, void *context) noexcept;
    int open_srx(fi_rx_attr *attr, fid_ep **endpoint, void *context) noexcept;
    int query_atomic(fi_datatype datatype, fi_op operation, fi_atomic_attr *attr, std::uint64_t flags) noexcept;
    int query_collective(fi_collective_op operation, fi_collective_attr *attr, std::uint64_t flags) noexcept;

private:
    bool may_cache(std::uint64_t access, std::uint64_t offset, std::uint64_t flags) noexcept;
    void explain_once(unsigned reason, const char *what) noexcept;
    int register_cached(const void *buffer, std::size_t bytes, std::uint64_t access, std::uint64_t requested_key,
                        void *context, fid_mr **region) noexcept;
    int pass_through(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **region) noexcept;
    int hand_out(fid_mr *lower, void *context, fid_mr **region) noexcept;
    CacheOptions cache_options(const fi_info &info) const;
    void print_statistics() const noexcept;

    Fabric &fabric_;
    const std::string name_;
    const Registrar::Keys keys_;
    const bool counts_from_start_; // remote offsets count from the region's first byte (no FI_MR_VIRT_ADDR)
    const bool may_cache_any_;     // no mode that ties a region to one handle
    const bool has_devices_;       // FI_HMEM: only then the memory's kind is told
    const unsigned generation_;    // of the process: differs in a forked child
    const std::uint64_t flags_below_; // decided before the lower domain is opened
    LowerDomain lower_;
    Registrar registrar_;
    std::unique_ptr<Cache> cache_;
    Atomic<int> handles_{0};
    Atomic<unsigned> explained_{0u}; // bit for each reason that has been logged
    Domain *previous_ = nullptr; // the list of open domains
    Domain *next_ = nullptr;
};

} // namespace regcache
