// SPDX-License-Identifier: BSD-2-Clause
// vm/ebpf.cpp and vm/ebpf_program.cpp: the source over a queue that a stand-in for the service gives; and the program in the
// kernel itself, where it may be loaded.
#include "vm/ebpf.hpp"

#include "prov/refusals.hpp"
#include "support/child.hpp"
#include "support/memory.hpp"
#include "support/real_sources.hpp"
#include "support/watching.hpp"
#include "util/regcached_server.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

// Gives out one queue, which the test writes in the kernel's place.
class StandIn final : public QueueMaker {
public:
    StandIn() : map_(memfd_create("queue", MFD_CLOEXEC))
    {
        if (ftruncate(map_.number(), sizeof(regcache_queue)) != 0)
            abort();
        void *const memory = mmap(nullptr, sizeof(regcache_queue), PROT_READ | PROT_WRITE, MAP_SHARED, map_.number(), 0);
        queue = static_cast<regcache_queue *>(memory);
    }
    ~StandIn() override { munmap(queue, sizeof(regcache_queue)); }

    Queue make_queue(pid_t, uid_t) override { return {Fd(dup(map_.number())), 1}; }
    void drop_queue(std::uint64_t) noexcept override {}
    std::vector<int> links() const override { return {link_.number()}; }

    void tell(Range range)
    {
        const std::uint64_t number = std::atomic_ref(queue->head).fetch_add(1);
        regcache_slot &slot = queue->slots[number % REGCACHE_SLOTS];
        slot.begin = range.begin;
        slot.end = range.end;
        std::atomic_ref(slot.number).store(number + 1);
    }

    regcache_queue *queue = nullptr;

private:
    Fd map_, link_{eventfd(0, EFD_CLOEXEC)};
};

class Service {
public:
    Service() : server_(maker, {})
    {
        const char *const folder = std::getenv("SCRATCH_DIR");
        path_ = std::string(folder ? folder : "/tmp") + "/regcached." + std::to_string(getpid());
        setenv("REGCACHED_SOCKET", path_.c_str(), 1);
        unlink(path_.c_str());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
        Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        cr_assert(bind(listener.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
        cr_assert(listen(listener.number(), 16) == 0);
        thread_ = std::thread([this, taken = std::move(listener)]() mutable { server_.serve(std::move(taken), stop_.number()); });
    }
    ~Service()
    {
        const std::uint64_t one = 1;
        if (write(stop_.number(), &one, sizeof one) == sizeof one)
            thread_.join();
        unlink(path_.c_str());
    }

    StandIn maker;

private:
    std::string path_;
    Fd stop_{eventfd(0, EFD_CLOEXEC)};
    service::Server server_;
    std::thread thread_;
};

void without_service()
{
    setenv("REGCACHED_SOCKET", "/nowhere/regcached", 1);
}

std::string error_of_start()
{
    try {
        const Ebpf source;
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

constexpr Range kSome{0x20'0000, 0x20'3000};

} // namespace

TestSuite(ebpf_alone, .init = without_service);

Test(ebpf, reads_the_queue_that_the_service_gives)
{
    Service service;
    Ebpf source;
    cr_expect(std::string(source.name()) == "ebpf");
    EventQueue::Cursor cursor = source.end();
    const std::uint64_t before = source.position();
    Event event;
    cr_expect(source.next(cursor, event) == EventQueue::Next::Empty);
    service.maker.tell(kSome);
    cr_expect(source.position() != before);
    cr_expect(source.next(cursor, event) == EventQueue::Next::One);
    cr_expect(event.range == kSome && event.change == Change::Gone);
    std::uint64_t position = 0;
    cr_expect(source.try_position(position) && position == source.position());
    cr_expect(source.look_every_ms() <= 1000); // nobody rings
}

Test(ebpf, tells_the_kernel_what_is_watched)
{
    Service service;
    Ebpf source;
    WatchedRange one{kSome, {}}, other{kSome, {}};
    cr_expect(source.watch(one) == Watch::Watched);
    cr_expect(source.watch(other) == Watch::Watched);
    cr_expect(service.maker.queue->watched[1] == 2);
    source.unwatch(one);
    cr_expect(service.maker.queue->watched[1] == 1);
    source.unwatch(other);
    cr_expect(service.maker.queue->watched[1] == 0);
}

Test(ebpf, ends_with_nothing_left)
{
    Service service;
    const Base before = measure_base();
    for (int i = 0; i < 10; ++i) {
        Ebpf source;
        WatchedRange watched{kSome, {}};
        cr_expect(source.watch(watched) == Watch::Watched);
        source.unwatch(watched);
    }
    cr_expect(is_back_at_base(before));
}

Test(ebpf, forked_child_is_told_nothing_and_holds_nothing)
{
    skip_under_sanitizer("a child of a process with threads may hang in its allocator");
    Service service;
    auto source = std::make_unique<Ebpf>();
    WatchedRange watched{kSome, {}};
    cr_assert(source->watch(watched) == Watch::Watched);
    service.maker.tell(kSome);
    const int status = status_of_child([&] {
        WatchedRange own{kSome, {}};
        if (source->watch(own) != Watch::NoEvents || source->position() != 0 || source->end() != 0)
            return 1;
        EventQueue::Cursor cursor = 0;
        Event event;
        if (source->next(cursor, event) != EventQueue::Next::Empty)
            return 2;
        source->unwatch(watched);
        source.reset();
        return service.maker.queue->watched[1] == 1 ? 0 : 3;
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(source->position() == 1);
    source->unwatch(watched);
}

Test(ebpf_alone, both_reasons_are_named)
{
    const std::string what = error_of_start();
    if (what.empty())
        skip("the program can be loaded here");
    cr_expect(what.find("/nowhere/regcached") != std::string::npos, "%s", what.c_str());
    cr_expect(what.find("without the service: ") != std::string::npos, "%s", what.c_str());
}

// In a child, which has no rights: /proc/self tells of the process's first thread.
Test(ebpf_alone, rights_that_are_missing_are_named)
{
    const int status = status_of_child([] {
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            return 1;
        const std::string what = error_of_start();
        return what.find("CAP_BPF and CAP_PERFMON are needed") != std::string::npos ? 0 : 2;
    });
    cr_expect(status == 0, "status %d", status);
}

Test(ebpf_alone, library_that_is_missing_is_named)
{
    if (getuid() != 0)
        skip("it isn't looked for without CAP_BPF and CAP_PERFMON");
    on_own_thread([] {
        std::string what;
        // Only libbpf is looked for by openat here; /proc/self/status says nothing either then.
        if (refuse(SYS_openat, kAnyCommand, ENOENT))
            what = error_of_start();
        cr_expect(what.find("CAP_BPF") != std::string::npos || what.find("libbpf1") != std::string::npos, "%s", what.c_str());
    });
}

// All the rest of it runs where the kernel takes the program.
Test(ebpf_alone, program_tells_of_changes_where_it_may_be_loaded)
{
    std::unique_ptr<Ebpf> source;
    try {
        source = std::make_unique<Ebpf>();
    } catch (const Error &error) {
        skip(error.what());
    }
    for (const Kind kind : {Kind::Private, Kind::Shared, Kind::Memfd, Kind::FileShared}) {
        test::Mapping memory(kind, 4 * page_size());
        memory.fill('x');
        const Range all = part_of(memory.data(), 0, 4);
        const Watching watching(*source, all);
        Told told(*source);
        memory.unmap();
        cr_expect(told.has_moved() && told.tells_of(all), "%s", name_of(kind));
    }
}

Test(ebpf_alone, processes_are_told_of_their_own_changes_alone)
{
    std::unique_ptr<EbpfProgram> program;
    try {
        program = std::make_unique<EbpfProgram>();
    } catch (const Error &error) {
        skip(error.what());
    }
    cr_expect(!program->links().empty());
    const auto queue = program->make_queue(getpid(), geteuid());
    cr_expect(queue.map && queue.address_space != 0);
    try {
        program->make_queue(getpid(), geteuid() + 1);
        cr_expect(false, "a queue for somebody else's process");
    } catch (const Error &error) {
        cr_expect(error.code() == ESRCH);
    }
    program->drop_queue(queue.address_space);
}
