// SPDX-License-Identifier: BSD-2-Clause
// The client's side of the service's protocol.
#include "vm/service_client.hpp"

#include "sys/error.hpp"
#include "vm/service_protocol.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace regcache {
namespace {

Fd connect_to_service()
{
    const char *const named = secure_getenv("REGCACHED_SOCKET");
    const char *const path = named ? named : service::kSocket;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path)
        throw Error(ENAMETOOLONG, std::string("REGCACHED_SOCKET is too long: ") + path);
    std::strcpy(address.sun_path, path);
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket)
        throw Error(errno, std::string("no socket: ") + std::strerror(errno));
    // A service that hangs must not hang the program.
    const timeval second{1, 0};
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    if (connect(socket.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
        throw Error(errno, std::string("the service regcached can't be reached at ") + path + " (" + std::strerror(errno) +
                               ")");
    return socket;
}

} // namespace

Served ask_service()
{
    Fd socket = connect_to_service();
    const service::Hello hello;
    // A service that refuses us at once has closed its end, and its answer is waiting.
    if (send(socket.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello && errno != EPIPE && errno != ECONNRESET)
        throw Error(errno, std::string("the service regcached doesn't listen: ") + std::strerror(errno));

    service::Answer answer;
    iovec piece{&answer, sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(service::kMostDescriptors * sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == ECONNRESET) // told once, before the answer that is waiting
        got = recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        throw Error(errno, std::string("the service regcached doesn't answer: ") + std::strerror(errno));

    Served served;
    for (cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
            served.held.emplace_back(number);
        }
    }
    if (got != sizeof answer || answer.magic != service::kMagic || answer.version != service::kVersion)
        throw Error(EPROTO, "the service regcached speaks another version of the protocol: install the same release of both");
    answer.why[sizeof answer.why - 1] = '\0';
    if (answer.error != 0)
        throw Error(answer.error, std::string("the service regcached refuses: ") + answer.why);
    if (served.held.size() != answer.descriptors || served.held.size() < 2)
        throw Error(EMFILE, "the service's answer didn't fit: too many open descriptors in this process");
    served.queue = std::move(served.held.front());
    served.held.front() = std::move(socket);
    return served;
}

} // namespace regcache
