// SPDX-License-Identifier: BSD-2-Clause
// Operation tables of what pin's endpoints don't do: every call answers -FI_ENOSYS.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

namespace pin {

extern fi_ops_msg idle_msg_ops;
extern fi_ops_tagged idle_tagged_ops;
extern fi_ops_atomic idle_atomic_ops;
extern fi_ops_collective idle_collective_ops;

} // namespace pin
