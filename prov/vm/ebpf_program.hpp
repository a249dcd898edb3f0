// SPDX-License-Identifier: BSD-2-Clause
// The program in the kernel that tells of vanished pages: loaded once by whoever may, for any number of processes.
#pragma once

#include "sys/fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace regcache {

// Who makes queues: the program, or a test's stand-in.
class QueueMaker {
public:
    // A queue for the address space that process `pid` has now, and that its user `uid` owns alone.
    struct Queue {
        Fd map;
        std::uint64_t address_space = 0; // names it to drop_queue()
    };
    virtual ~QueueMaker() = default;
    virtual Queue make_queue(pid_t pid, uid_t uid) = 0; // throws Error
    virtual void drop_queue(std::uint64_t address_space) noexcept = 0;
    // What keeps the program attached as long as anybody holds it.
    virtual std::vector<int> links() const = 0;
};

// Needs CAP_BPF and CAP_PERFMON, and a kernel with BTF that isn't locked down. Not for several threads at once.
class EbpfProgram final : public QueueMaker {
public:
    // Loads it and attaches it to what this kernel has. Throws Error that names the reason.
    EbpfProgram();
    ~EbpfProgram() override;

    Queue make_queue(pid_t pid, uid_t uid) override;
    void drop_queue(std::uint64_t address_space) noexcept override;
    std::vector<int> links() const override;

private:
    struct Loaded;
    std::unique_ptr<Loaded> loaded_;
};

} // namespace regcache
