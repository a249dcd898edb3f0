// SPDX-License-Identifier: BSD-2-Clause
// A provider's fabric and domain as an application opens them, and regions in it: plain fi_* calls, closed at the end.
// Doesn't know any provider but by name.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace regcache::test {

// Owns a fid_mr, fid_ep, fid_cq, ...; closed at its end, in the opposite order of opening like any C++ object.
template <class T>
class Owned {
public:
    Owned() noexcept = default;
    explicit Owned(T *object) noexcept : object_(object) {}
    Owned(Owned &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Owned &operator=(Owned &&other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Owned()
    {
        if (const int error = close())
            std::fprintf(stderr, "fi_close: %s\n", fi_strerror(-error));
    }

    T *get() const noexcept { return object_; }
    T *operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    // For fi_*_open(..., owned.out(), ...).
    T **out() noexcept { return &object_; }
    // 0, or what fi_close says; then it is still open and owned.
    int close() noexcept
    {
        const int error = object_ ? fi_close(&object_->fid) : 0;
        if (error == 0)
            object_ = nullptr;
        return error;
    }
    // No longer ours to close.
    T *release() noexcept { return std::exchange(object_, nullptr); }

private:
    T *object_ = nullptr;
};

using Region = Owned<fid_mr>;

inline constexpr std::uint64_t kAllRights =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t kLocalRights = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
inline constexpr int kBasicModes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

struct InfoDelete {
    void operator()(fi_info *info) const noexcept { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDelete>;

// What to ask fi_getinfo for. Empty texts ask for nothing.
struct Wish {
    std::string provider = "pin"; // "regcache" to go through it
    std::string lower;            // with regcache: whose fabric ("pin", "tcp", ...); also sets FI_REGCACHE_LOWER
    std::string domain;
    std::uint64_t caps = FI_MSG | FI_RMA;
    std::uint64_t mode = 0;
    int mr_mode = kBasicModes;
    fi_ep_type type = FI_EP_UNSPEC;
    std::uint32_t version = FI_VERSION(1, 14);
};

// The first info that fulfils the wish, alone; empty when there is none.
Info find_info(const Wish &wish);

// Info, fabric and domain. Throws runtime_error with the failing call's name and its error.
class Card {
public:
    Card() : Card(Wish{}) {}
    explicit Card(const Wish &wish);

    fi_info *info() const noexcept { return info_.get(); }
    fid_fabric *fabric() const noexcept { return fabric_.get(); }
    fid_domain *domain() const noexcept { return domain_.get(); }

    // The region, or empty; then *error (if given) is fi_mr_reg's answer.
    Region reg(const void *start, std::size_t len, std::uint64_t access = kAllRights, int *error = nullptr,
               std::uint64_t requested_key = 0);
    Region regattr(const fi_mr_attr &attr, std::uint64_t flags = 0, int *error = nullptr);

    // 0 or fi_close's error: first the domain, then the fabric.
    int close() noexcept;

private:
    Info info_;
    Owned<fid_fabric> fabric_;
    Owned<fid_domain> domain_;
};

} // namespace regcache::test
