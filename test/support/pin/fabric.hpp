// SPDX-License-Identifier: BSD-2-Clause
// The fabric, and what it opens: domains, event queues, passive endpoints, wait sets.
#pragma once

#include "objects.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

namespace pin {

struct Fabric final : fid_fabric {
    using C = fid_fabric;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_FABRIC; }
    Fabric(std::uint32_t version, void *context);

    int close() { return objects().remove(&fid); }
    int open_domain(fi_info *info, fid_domain **domain, void *context);
    int open_domain2(fi_info *info, fid_domain **domain, std::uint64_t flags, void *context);
    int open_passive_ep(fi_info *info, fid_pep **pep, void *context);
    int open_eq(fi_eq_attr *attr, fid_eq **eq, void *context);
    int open_wait(fi_wait_attr *attr, fid_wait **wait);
    int trywait(struct fid **fids, int count);
};

struct Wait final : fid_wait {
    using C = fid_wait;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_WAIT; }
    Wait();
    int close() { return objects().remove(&fid); }
};

// An info may name an opened fabric or domain: it must be pin's own. Counts one that isn't.
bool are_objects_own(const fi_info *info);
// True for a null pointer too.
bool is_own_wait_set(fid_wait *wait);

} // namespace pin
