// SPDX-License-Identifier: BSD-2-Clause
// Accepts, answers and lets go.
#include "regcached_server.hpp"

#include "sys/bell.hpp"
#include "sys/error.hpp"
#include "vm/service_protocol.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace regcache::service {
namespace {

void send_answer(const Fd &socket, const Answer &answer, const std::vector<int> &descriptors) noexcept
{
    iovec piece{const_cast<Answer *>(&answer), sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr *const part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
    }
    // A client that doesn't read has room for one packet all the same; one that is gone is noticed by poll.
    sendmsg(socket.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

} // namespace

void Server::serve(Fd listener, int stop)
{
    listener_ = std::move(listener);
    fcntl(listener_.number(), F_SETFL, O_NONBLOCK);
    std::vector<pollfd> wait_for;
    for (;;) {
        wait_for = {{stop, POLLIN, 0}, {listener_.number(), POLLIN, 0}};
        std::uint64_t nearest_ns = UINT64_MAX;
        for (const Client &client : clients_) {
            wait_for.push_back({client.socket.number(), POLLIN, 0});
            if (client.deadline_ns != 0)
                nearest_ns = std::min(nearest_ns, client.deadline_ns);
        }
        int timeout_ms = -1;
        if (nearest_ns != UINT64_MAX)
            timeout_ms = nearest_ns > now_ns() ? static_cast<int>((nearest_ns - now_ns()) / 1'000'000) + 1 : 0;
        if (poll(wait_for.data(), wait_for.size(), timeout_ms) < 0)
            continue;
        if (wait_for[0].revents != 0)
            return;
        // From the end, since letting one go puts the last one in its place.
        for (std::size_t i = clients_.size(); i-- > 0;) {
            Client &client = clients_[i];
            const bool is_late = client.deadline_ns != 0 && client.deadline_ns <= now_ns();
            if (is_late || (wait_for[i + 2].revents != 0 && !listen_to(client)))
                let_go(i);
        }
        if (wait_for[1].revents != 0)
            accept_one();
    }
}

void Server::accept_one()
{
    Fd socket(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket)
        return;
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return;
    const auto same_user = [&](const Client &client) { return client.uid == peer.uid; };
    if (clients_.size() >= limits_.clients)
        return refuse(socket, EBUSY, "too many processes on this node (--max-clients)");
    if (static_cast<std::size_t>(std::count_if(clients_.begin(), clients_.end(), same_user)) >= limits_.clients_of_a_user)
        return refuse(socket, EBUSY, "too many processes of this user (--max-clients-of-a-user)");
    Client client;
    client.socket = std::move(socket);
    client.pid = peer.pid;
    client.uid = peer.uid;
    client.deadline_ns = now_ns() + limits_.patience_ms * std::uint64_t{1'000'000};
    clients_.push_back(std::move(client));
}

bool Server::listen_to(Client &client)
{
    char packet[256];
    const ssize_t got = recv(client.socket.number(), packet, sizeof packet, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0 || client.deadline_ns == 0)
        return false; // gone, or it speaks where it has nothing to say
    Hello hello;
    if (got != sizeof hello)
        return false;
    std::memcpy(&hello, packet, sizeof hello);
    if (hello.magic != kMagic)
        return false;
    if (hello.version != kVersion) {
        refuse(client.socket, EPROTO, "the service and the provider are of different releases");
        return false;
    }
    return answer(client);
}

bool Server::answer(Client &client)
{
    try {
        QueueMaker::Queue queue = maker_.make_queue(client.pid, client.uid);
        // A process has one queue: a second connection takes it over, and the first must not drop it.
        for (Client &other : clients_)
            if (&other != &client && other.address_space == queue.address_space)
                other.address_space = 0;
        client.address_space = queue.address_space;
        client.deadline_ns = 0;
        std::vector<int> descriptors = maker_.links();
        descriptors.insert(descriptors.begin(), queue.map.number());
        Answer yes;
        yes.descriptors = static_cast<std::uint32_t>(descriptors.size());
        send_answer(client.socket, yes, descriptors);
        return true;
    } catch (const Error &error) {
        refuse(client.socket, error.code(), error.what());
        return false;
    }
}

void Server::refuse(const Fd &socket, int error, const char *why) noexcept
{
    Answer no;
    no.error = error;
    std::snprintf(no.why, sizeof no.why, "%s", why);
    send_answer(socket, no, {});
}

void Server::let_go(std::size_t index) noexcept
{
    if (clients_[index].address_space != 0)
        maker_.drop_queue(clients_[index].address_space);
    std::swap(clients_[index], clients_.back());
    clients_.pop_back();
}

} // namespace regcache::service
