// SPDX-License-Identifier: BSD-2-Clause
// Tables of calls that pin's endpoints don't do (idle_ops.hpp).
#include "idle_ops.hpp"

#include "ops.hpp"

namespace pin {

constinit fi_ops_msg idle_msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = enosys,
    .recvv = enosys,
    .recvmsg = enosys,
    .send = enosys,
    .sendv = enosys,
    .sendmsg = enosys,
    .inject = enosys,
    .senddata = enosys,
    .injectdata = enosys,
};

constinit fi_ops_tagged idle_tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = enosys,
    .recvv = enosys,
    .recvmsg = enosys,
    .send = enosys,
    .sendv = enosys,
    .sendmsg = enosys,
    .inject = enosys,
    .senddata = enosys,
    .injectdata = enosys,
};

constinit fi_ops_atomic idle_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = enosys,
    .writev = enosys,
    .writemsg = enosys,
    .inject = enosys,
    .readwrite = enosys,
    .readwritev = enosys,
    .readwritemsg = enosys,
    .compwrite = enosys,
    .compwritev = enosys,
    .compwritemsg = enosys,
    .writevalid = enosys,
    .readwritevalid = enosys,
    .compwritevalid = enosys,
};

constinit fi_ops_collective idle_collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = enosys,
    .broadcast = enosys,
    .alltoall = enosys,
    .allreduce = enosys,
    .allgather = enosys,
    .reduce_scatter = enosys,
    .reduce = enosys,
    .scatter = enosys,
    .gather = enosys,
    .msg = enosys,
    .barrier2 = enosys,
};

} // namespace pin
