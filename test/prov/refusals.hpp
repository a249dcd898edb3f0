// SPDX-License-Identifier: BSD-2-Clause
// Makes the kernel refuse system calls of this thread, and of those that it starts, for as long as they live: what containers
// and sysctls do.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>

namespace regcache::test {

constexpr std::uint32_t kAnyCommand = 0;

// From now on `call`, with `command` as its second argument (kAnyCommand: whatever that is), fails with `error`. False when
// no filter can be set here.
inline bool refuse(int call, std::uint32_t command, int error)
{
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + sizeof(std::uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, command, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (command == kAnyCommand)
        program[2] = BPF_STMT(BPF_LD | BPF_IMM, kAnyCommand);
    const sock_fprog filter{sizeof program / sizeof program[0], program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

} // namespace regcache::test
