// SPDX-License-Identifier: BSD-2-Clause
// The service's work: one connection a process, one event queue for each. Doesn't know where the listening socket is from.
#pragma once

#include "sys/fd.hpp"
#include "vm/ebpf_program.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regcache::service {

struct Limits {
    std::size_t clients = 2048;          // connections in all: each queue takes 200 KiB of the kernel's memory
    std::size_t clients_of_a_user = 512; // root's too
    unsigned patience_ms = 5000;         // for a client's first words
};

// Single-threaded: every call to a client is one packet that is sent or dropped, so that nobody waits for anybody.
class Server {
public:
    Server(QueueMaker &maker, const Limits &limits) noexcept : maker_(maker), limits_(limits) {}

    // Serves at `listener`, a listening Unix socket of sequenced packets, until `stop` becomes readable. The queues stay
    // with their processes, which also keep the program attached.
    void serve(Fd listener, int stop);

private:
    struct Client {
        Fd socket;
        pid_t pid = 0;
        uid_t uid = 0;
        std::uint64_t deadline_ns = 0;   // for its first words; 0 once it has a queue
        std::uint64_t address_space = 0; // 0: no queue
    };

    void accept_one();
    // False when the client is to be let go.
    bool listen_to(Client &client);
    bool answer(Client &client);
    void refuse(const Fd &socket, int error, const char *why) noexcept;
    void let_go(std::size_t index) noexcept;

    QueueMaker &maker_;
    Fd listener_;
    const Limits limits_;
    std::vector<Client> clients_;
};

} // namespace regcache::service
