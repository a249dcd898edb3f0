// SPDX-License-Identifier: BSD-2-Clause
// regcached: loads the event program once for a node and hands each process a queue of its own. This file reads the
// command line and makes the socket.
#include "regcached_server.hpp"

#include "sys/error.hpp"
#include "vm/service_protocol.hpp"

#include <getopt.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace regcache;

struct Options {
    std::string socket = service::kSocket;
    service::Limits limits;
};

[[noreturn]] void usage(int status)
{
    std::fprintf(status ? stderr : stdout,
                 "usage: regcached [--socket PATH] [--max-clients N] [--max-clients-of-a-user N]\n"
                 "Tells libfabric programs that use regcache which of their mappings have changed; see regcached(8).\n");
    std::exit(status);
}

std::size_t number(const char *option, const char *text)
{
    char *end = nullptr;
    errno = 0;
    const unsigned long value = std::strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || value == 0 || value > 4096) {
        std::fprintf(stderr, "regcached: %s takes a number from 1 to 4096, not \"%s\"\n", option, text);
        std::exit(2);
    }
    return value;
}

Options read_options(int argc, char **argv)
{
    enum { kSocket = 1, kMaxClients, kMaxOfUser };
    const option known[] = {{"socket", required_argument, nullptr, kSocket},
                            {"max-clients", required_argument, nullptr, kMaxClients},
                            {"max-clients-of-a-user", required_argument, nullptr, kMaxOfUser},
                            {"help", no_argument, nullptr, 'h'},
                            {"version", no_argument, nullptr, 'V'},
                            {nullptr, 0, nullptr, 0}};
    Options options;
    for (int got; (got = getopt_long(argc, argv, "hV", known, nullptr)) != -1;) {
        switch (got) {
        case kSocket:
            options.socket = optarg;
            break;
        case kMaxClients:
            options.limits.clients = number("--max-clients", optarg);
            break;
        case kMaxOfUser:
            options.limits.clients_of_a_user = number("--max-clients-of-a-user", optarg);
            break;
        case 'h':
            usage(0);
        case 'V':
            std::puts("regcached " PACKAGE_VERSION);
            std::exit(0);
        default:
            usage(2);
        }
    }
    if (optind != argc)
        usage(2);
    return options;
}

// The socket that systemd opened for us, if it did.
Fd socket_of_systemd() noexcept
{
    const char *const pid = std::getenv("LISTEN_PID");
    const char *const count = std::getenv("LISTEN_FDS");
    if (!pid || !count || std::atol(pid) != getpid() || std::atoi(count) != 1)
        return Fd();
    return Fd(3);
}

Fd make_socket(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw Error(ENAMETOOLONG, "the socket's path is too long: " + path);
    std::strcpy(address.sun_path, path.c_str());
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    // What a service that was killed left behind; a living one still answers.
    if (connect(socket.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0)
        throw Error(EADDRINUSE, "another regcached serves " + path);
    socket = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (struct stat there; lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode))
        unlink(path.c_str());
    const mode_t mask = umask(0); // every user may connect; who it is, is asked of the kernel
    const int bound = bind(socket.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
    const int error = errno;
    umask(mask);
    if (bound != 0)
        throw Error(error, "can't make the socket " + path + ": " + std::strerror(error) + "; does its folder exist?");
    if (listen(socket.number(), 128) != 0)
        throw Error(errno, "can't listen at " + path + ": " + std::strerror(errno));
    return socket;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options(argc, argv);
    try {
        sigset_t ends;
        sigemptyset(&ends);
        sigaddset(&ends, SIGTERM);
        sigaddset(&ends, SIGINT);
        sigprocmask(SIG_BLOCK, &ends, nullptr);
        const Fd stop(signalfd(-1, &ends, SFD_CLOEXEC));
        EbpfProgram program;
        service::Server server(program, options.limits);
        Fd listener = socket_of_systemd();
        const bool is_own = !listener;
        if (is_own)
            listener = make_socket(options.socket);
        std::fprintf(stderr, "regcached: serving\n");
        server.serve(std::move(listener), stop.number());
        if (is_own)
            unlink(options.socket.c_str());
        return 0;
    } catch (const Error &error) {
        std::fprintf(stderr, "regcached: %s\n", error.what());
        return 1;
    }
}
