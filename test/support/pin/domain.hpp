// SPDX-License-Identifier: BSD-2-Clause
// The domain, and memory regions: how a request becomes pinned pages, a key and a descriptor.
#pragma once

#include "objects.hpp"
#include "queues.hpp"
#include "regions.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace pin {

// Doesn't outlive its fabric; nothing it opened outlives it (-FI_EBUSY).
struct Domain final : fid_domain {
    using C = fid_domain;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_DOMAIN; }
    Domain(const fi_info *info, void *context);
    int close();
    int bind(struct fid *other, std::uint64_t flags);
    int control(int command, void *argument);
    int open_ops(const char *name, std::uint64_t flags, void **ops, void *context);

    int open_av(fi_av_attr *attr, fid_av **av, void *context);
    int open_cq(fi_cq_attr *attr, fid_cq **cq, void *context);
    int open_counter(fi_cntr_attr *attr, fid_cntr **counter, void *context);
    int open_poll(fi_poll_attr *attr, fid_poll **poll);
    int open_endpoint(fi_info *info, fid_ep **ep, void *context);
    int open_endpoint2(fi_info *info, fid_ep **ep, std::uint64_t flags, void *context);
    int open_scalable(fi_info *info, fid_ep **ep, void *context);
    int open_shared_tx(fi_tx_attr *attr, fid_stx **stx, void *context);
    int open_shared_rx(fi_rx_attr *attr, fid_ep **rx, void *context);
    int query_atomic(fi_datatype type, fi_op operation, fi_atomic_attr *attr, std::uint64_t flags);
    int query_collective(fi_collective_op collective, fi_collective_attr *attr, std::uint64_t flags);

    int reg(const void *start, std::size_t len, std::uint64_t access, std::uint64_t offset, std::uint64_t requested_key,
            std::uint64_t flags, fid_mr **mr, void *context);
    int regv(const iovec *iov, std::size_t count, std::uint64_t access, std::uint64_t offset, std::uint64_t requested_key,
             std::uint64_t flags, fid_mr **mr, void *context);
    int regattr(const fi_mr_attr *attr, std::uint64_t flags, fid_mr **mr);

    bool has_mode(int bits) const noexcept { return (mr_mode_ & bits) != 0; }

private:
    std::shared_ptr<Registration> describe(const fi_mr_attr &attr, std::uint64_t flags) const;
    int make_region(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **mr);

    int mr_mode_;
    unsigned number_;
    unsigned generation_;
    std::shared_ptr<Rings> rings_;
    Eq *mr_events_ = nullptr; // bound with FI_REG_MR: each registration is reported there
};

struct Mr final : fid_mr {
    using C = fid_mr;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_MR; }
    Mr(const Domain &domain, void *context);
    int close();
    int bind(struct fid *other, std::uint64_t flags);
    int control(int command, void *argument);

    Claim claim;
    unsigned generation;

private:
    int enable();
    void publish();

    bool needs_enabling_;
    std::mutex mutex_;
    std::vector<struct fid *> bound_;
    friend struct Domain;
};

} // namespace pin
