// SPDX-License-Identifier: BSD-2-Clause
// What the service does with its clients, well-behaved and not; queues are made by a stand-in.
#include "util/regcached_server.hpp"

#include "sys/error.hpp"
#include "vm/service_client.hpp"
#include "vm/service_protocol.hpp"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using namespace regcache;

namespace {

// Queues are memfds, address spaces are counted.
class StandIn final : public QueueMaker {
public:
    Queue make_queue(pid_t, uid_t) override
    {
        if (refuses)
            throw Error(EPERM, "refused by order");
        Queue queue;
        queue.map = Fd(memfd_create("queue", MFD_CLOEXEC));
        queue.address_space = always_the_same ? 1 : static_cast<std::uint64_t>(++made);
        ++live;
        return queue;
    }
    void drop_queue(std::uint64_t) noexcept override { --live; }
    std::vector<int> links() const override { return {link.number()}; }

    Fd link{eventfd(0, EFD_CLOEXEC)};
    std::atomic<bool> refuses{false}, always_the_same{false};
    std::atomic<int> made{0}, live{0};
};

// The service on a thread of the test, at a socket of its own.
class Service {
public:
    explicit Service(const service::Limits &limits = {}) : server_(maker, limits)
    {
        const char *const folder = std::getenv("SCRATCH_DIR");
        path = std::string(folder ? folder : "/tmp") + "/regcached." + std::to_string(getpid());
        setenv("REGCACHED_SOCKET", path.c_str(), 1);
        Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        const sockaddr_un address = address_of();
        unlink(path.c_str());
        cr_assert(zero(int, bind(listener.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address)));
        cr_assert(zero(int, listen(listener.number(), 128)));
        thread_ = std::thread([this, taken = std::move(listener)]() mutable { server_.serve(std::move(taken), stop_.number()); });
    }
    ~Service()
    {
        const std::uint64_t one = 1;
        if (write(stop_.number(), &one, sizeof one) == sizeof one)
            thread_.join();
        unlink(path.c_str());
    }

    Fd connect() const
    {
        Fd client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        const sockaddr_un address = address_of();
        cr_assert(zero(int, ::connect(client.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address)));
        return client;
    }
    // Whether the service has let the client go, within the time that a busy machine may need.
    static bool is_let_go(const Fd &client)
    {
        char packet[512];
        for (int turn = 0; turn < 3000; ++turn) {
            const ssize_t got = recv(client.number(), packet, sizeof packet, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno == ECONNRESET))
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }
    bool queues_become(int wanted) const
    {
        for (int turn = 0; turn < 3000 && maker.live != wanted; ++turn)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return maker.live == wanted;
    }

    StandIn maker;
    std::string path;

private:
    sockaddr_un address_of() const
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        return address;
    }

    Fd stop_{eventfd(0, EFD_CLOEXEC)};
    service::Server server_;
    std::thread thread_;
};

std::string refusal()
{
    try {
        ask_service();
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

bool is_refused_for(const char *words)
{
    return refusal().find(words) != std::string::npos;
}

} // namespace

Test(regcached_server, gives_a_queue_and_what_keeps_the_program_attached)
{
    Service service;
    Served served = ask_service();
    cr_expect(ge(int, served.queue.number(), 0));
    cr_expect(eq(sz, served.held.size(), 2u));
    cr_expect(service.queues_become(1));
    served.held.clear(); // the connection with it
    cr_expect(service.queues_become(0));
}

Test(regcached_server, passes_on_why_there_is_no_queue)
{
    Service service;
    service.maker.refuses = true;
    cr_expect(is_refused_for("refused by order"));
}

Test(regcached_server, second_connection_of_a_process_takes_the_queue_over)
{
    Service service;
    service.maker.always_the_same = true;
    Served first = ask_service();
    Served second = ask_service();
    first.held.clear();
    Served third = ask_service(); // after the service has noticed the first one's end
    second.held.clear();
    third.held.clear();
    // Three were made, one was dropped: the last one's.
    cr_expect(service.queues_become(2));
}

Test(regcached_server, bounds_the_clients_of_a_user)
{
    service::Limits limits;
    limits.clients_of_a_user = 2;
    Service service(limits);
    Served first = ask_service(), second = ask_service();
    cr_expect(is_refused_for("of this user"));
    first.held.clear();
    cr_expect(service.queues_become(1));
    cr_expect(eq(str, refusal(), std::string()));
}

Test(regcached_server, bounds_the_clients_in_all)
{
    service::Limits limits;
    limits.clients = 1;
    Service service(limits);
    const Served first = ask_service();
    cr_expect(is_refused_for("on this node"));
}

Test(regcached_server, lets_go_who_says_nothing)
{
    service::Limits limits;
    limits.patience_ms = 50;
    Service service(limits);
    const Fd silent = service.connect();
    cr_expect(Service::is_let_go(silent));
}

Test(regcached_server, lets_go_who_speaks_something_else)
{
    Service service;
    std::srand(1);
    for (int round = 0; round < 200; ++round) {
        const Fd client = service.connect();
        char noise[600];
        const auto bytes = static_cast<std::size_t>(std::rand()) % sizeof noise;
        for (char &each : noise)
            each = static_cast<char>(std::rand());
        if (bytes != 0 && send(client.number(), noise, bytes, MSG_NOSIGNAL) > 0)
            cr_expect(Service::is_let_go(client));
    }
    cr_expect(eq(int, int{service.maker.made}, 0));
    cr_expect(eq(str, refusal(), std::string())); // and serves others as before
}

Test(regcached_server, names_another_release)
{
    Service service;
    const Fd client = service.connect();
    service::Hello hello;
    hello.version = 999;
    cr_assert(eq(sz, static_cast<std::size_t>(send(client.number(), &hello, sizeof hello, 0)), sizeof hello));
    service::Answer answer;
    cr_assert(eq(sz, static_cast<std::size_t>(recv(client.number(), &answer, sizeof answer, 0)), sizeof answer));
    cr_expect(eq(int, answer.error, EPROTO));
}

Test(regcached_server, lets_go_who_goes_on_talking)
{
    Service service;
    Served served = ask_service();
    const Fd &connection = served.held.front();
    cr_assert(gt(int, static_cast<int>(send(connection.number(), "more", 4, MSG_NOSIGNAL)), 0));
    cr_expect(service.queues_become(0));
}

Test(regcached_server, many_that_come_and_go)
{
    Service service;
    for (int round = 0; round < 100; ++round)
        ask_service();
    cr_expect(service.queues_become(0));
    cr_expect(eq(int, int{service.maker.made}, 100));
}

Test(service_client, says_where_no_service_is)
{
    setenv("REGCACHED_SOCKET", "/nowhere/regcached", 1);
    cr_expect(is_refused_for("/nowhere/regcached"));
    setenv("REGCACHED_SOCKET", std::string(300, 'x').c_str(), 1);
    cr_expect(is_refused_for("too long"));
}
