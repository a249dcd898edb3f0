// SPDX-License-Identifier: BSD-2-Clause
// What isn't cached works as it would without a cache, and the log says so: one line, once for each reason.
#include "prov/messages.hpp"
#include "prov/over_pin.hpp"
#include "prov/refusals.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

void begin()
{
    show_warnings();
    need_pin();
}

// How many registrations five equal requests make, each with the right bytes.
std::uint64_t made_for_five(Card &card, const char *start, std::size_t bytes, std::uint64_t access = kLocalRights)
{
    const std::uint64_t before = registered();
    for (int i = 0; i < 5; ++i) {
        const Region region = card.reg(start, bytes, access);
        cr_expect(region && seen(region, start) == start[0] && seen(region, start + bytes - 1) == start[bytes - 1]);
    }
    return registered() - before;
}

std::uint64_t made_for_five(Card &card, const Mapping &memory)
{
    memory.fill('A');
    return made_for_five(card, memory.data(), memory.size());
}

// On ebpf these kinds of memory are cached.
Wish over_pin_by_userfaultfd()
{
    setenv("FI_REGCACHE_SOURCE", "userfaultfd", 1);
    return over_pin();
}

// One warning with `parts` in it, and no other.
void expect_one_warning(const Messages &messages, const std::vector<std::string> &parts)
{
    cr_expect(messages.warnings(parts) == 1, "%s", messages.text().c_str());
    cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
}

} // namespace

TestSuite(uncached, .init = begin);

Test(uncached, when_every_watch_fails_all_works)
{
    const Messages messages;
    Card card(over_pin_by_userfaultfd());
    const Mapping cached(Kind::Private, 4 * page_size());
    cr_expect(made_for_five(card, cached) == 1);
    if (!refuse(SYS_ioctl, UFFDIO_REGISTER, EPERM))
        skip("no seccomp filter can be set here");
    for (int i = 0; i < 10; ++i) {
        const Mapping memory(Kind::Private, 4 * page_size());
        cr_expect(made_for_five(card, memory) == 5);
    }
    expect_one_warning(messages, {"isn't cached", "the kernel refuses to watch it"});
    cr_expect(made_for_five(card, cached.data(), cached.size()) == 0, "what is watched is watched");
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(uncached, when_there_are_too_many_mappings_all_works)
{
    const Messages messages;
    Card card(over_pin_by_userfaultfd());
    if (!refuse(SYS_ioctl, UFFDIO_REGISTER, ENOMEM))
        skip("no seccomp filter can be set here");
    for (int i = 0; i < 3; ++i)
        cr_expect(made_for_five(card, Mapping(Kind::Private, page_size())) == 5);
    expect_one_warning(messages, {"isn't cached", "vm.max_map_count"});
}

Test(uncached, shared_memory_and_files_work)
{
    const Messages messages;
    Card card(over_pin_by_userfaultfd());
    for (const Kind kind : {Kind::Shared, Kind::Memfd, Kind::SysV, Kind::FilePrivate})
        cr_expect(made_for_five(card, Mapping(kind, 3 * page_size())) == 5, "%s", name_of(kind));
    static const char constant[] = "constant data";
    cr_expect(made_for_five(card, constant, sizeof constant, FI_SEND) == 5);
    // Private and shared memory side by side, in one request.
    const Mapping both(Kind::Private, 4 * page_size());
    both.fill('A');
    cr_assert(mmap(both.data() + page_size(), page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
              MAP_FAILED);
    both.fill('A');
    cr_expect(made_for_five(card, both.data(), both.size()) == 5);
    cr_expect(made_for_five(card, both.data() + 2 * page_size(), page_size()) == 1, "the private part alone is cached");
    expect_one_warning(messages, {"isn't cached", "shared mapping or a file", "FI_REGCACHE_SHARED=always"});
}

Test(uncached, memory_of_another_userfaultfd_works)
{
    const Messages messages;
    Card card(over_pin_by_userfaultfd());
    const int other = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */));
    if (other < 0)
        skip("userfaultfd can't be opened");
    uffdio_api api{};
    api.api = UFFD_API;
    cr_assert(ioctl(other, UFFDIO_API, &api) == 0);
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    uffdio_register wish{};
    wish.range = {reinterpret_cast<std::uintptr_t>(memory.data() + page_size()), page_size()};
    wish.mode = UFFDIO_REGISTER_MODE_MISSING;
    cr_assert(ioctl(other, UFFDIO_REGISTER, &wish) == 0);
    cr_expect(made_for_five(card, memory.data(), memory.size()) == 5, "a part is the other's");
    cr_expect(made_for_five(card, memory.data() + page_size(), page_size()) == 5, "all is the other's");
    cr_expect(made_for_five(card, memory.data() + 2 * page_size(), page_size()) == 1, "none is the other's");
    expect_one_warning(messages, {"isn't cached", "another userfaultfd has it"});
    close(other);
    cr_expect(made_for_five(card, memory.data(), memory.size()) == 1, "the other is gone");
}

// tcp registers what isn't there.
Test(uncached, memory_that_is_not_mapped_works_where_it_may_be_registered)
{
    const Messages messages;
    setenv("FI_REGCACHE_SOURCE", "userfaultfd", 1);
    Card card(over("tcp"));
    const Mapping memory(Kind::Private, 4 * page_size());
    cr_assert(munmap(memory.data() + page_size(), page_size()) == 0);
    for (int i = 0; i < 5; ++i)
        cr_expect(card.reg(memory.data(), memory.size(), FI_SEND));
    expect_one_warning(messages, {"isn't cached", "not everything is mapped"});
}

Test(uncached, what_is_larger_than_the_cache_works)
{
    const Messages messages;
    const Variable size("FI_REGCACHE_MAX_SIZE", "32K");
    Card card(over_pin());
    for (int i = 0; i < 3; ++i)
        cr_expect(made_for_five(card, Mapping(Kind::Private, 9 * 4096)) == 5);
    cr_expect(made_for_five(card, Mapping(Kind::Private, page_size())) == 1);
    expect_one_warning(messages, {"isn't cached", "at most 32768 bytes", "FI_REGCACHE_MAX_SIZE"});
}

Test(uncached, keys_that_the_application_insists_on_work)
{
    const Messages messages;
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated");
    Wish wish = over_pin();
    wish.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    cr_expect(card.reg(memory.data(), page_size(), kLocalRights, nullptr, 1));
    cr_expect(messages.warnings() == 0, "these are cached");
    for (std::uint64_t key = 1; key <= 5; ++key)
        cr_expect(card.reg(memory.data(), page_size(), kAllRights, nullptr, key));
    expect_one_warning(messages, {"isn't cached", "FI_MR_PROV_KEY"});
}

Test(uncached, regions_that_belong_to_endpoints_work)
{
    const Messages messages;
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,endpoint");
    Wish wish = over_pin();
    wish.mr_mode |= FI_MR_ENDPOINT;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    for (int i = 0; i < 5; ++i)
        cr_expect(card.reg(memory.data(), page_size()));
    expect_one_warning(messages, {"isn't cached", "FI_MR_ENDPOINT"});
}

Test(uncached, device_memory_works)
{
    const Messages messages;
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,hmem");
    Wish wish = over_pin();
    wish.caps |= FI_HMEM;
    wish.mr_mode |= FI_MR_HMEM;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    const iovec piece{memory.data(), page_size()};
    fi_mr_attr attr{};
    attr.mr_iov = &piece;
    attr.iov_count = 1;
    attr.access = kLocalRights;
    attr.iface = FI_HMEM_CUDA;
    for (int i = 0; i < 5; ++i)
        cr_expect(card.regattr(attr));
    expect_one_warning(messages, {"isn't cached", "devices"});
}

Test(uncached, where_userfaultfd_is_forbidden_all_works)
{
    const Messages messages;
    // ebpf needs bpf(2) or the service, which an ordinary container has neither of.
    if (!refuse(SYS_userfaultfd, kAnyCommand, EPERM) || !refuse(SYS_ioctl, USERFAULTFD_IOC_NEW, EPERM) ||
        !refuse(SYS_bpf, kAnyCommand, EPERM))
        skip("no seccomp filter can be set here");
    const Variable stats("FI_REGCACHE_STATS", "yes");
    const Variable service("REGCACHED_SOCKET", "/nowhere/" + std::string(90, 'x'));
    {
        Card first(over_pin()), second(over_pin());
        cr_expect(made_for_five(first, Mapping(Kind::Private, page_size())) == 5);
        cr_expect(made_for_five(second, Mapping(Kind::Private, page_size())) == 5);
    }
    cr_expect(messages.lines({"\"source\": \"none\""}).size() == 2, "%s", messages.text().c_str());
    expect_one_warning(messages, {"none is used", "nothing is cached", "userfaultfd", "seccomp", "access to /dev/userfaultfd"});

    // Asked for by name it is an error, with the reason, and nothing stays open.
    const Base before = measure_base();
    const Variable source("FI_REGCACHE_SOURCE", "userfaultfd");
    const Info info = find_info(over_pin());
    cr_assert(info);
    {
        Owned<fid_fabric> fabric;
        cr_assert(fi_fabric(info->fabric_attr, fabric.out(), nullptr) == 0);
        for (int i = 0; i < 3; ++i) {
            fid_domain *domain = nullptr;
            cr_expect(fi_domain(fabric.get(), info.get(), &domain, nullptr) == -FI_EPERM);
            cr_expect(!domain);
        }
    }
    cr_expect(messages.warnings({"userfaultfd can't be used", "seccomp"}) >= 1, "%s", messages.text().c_str());
    expect_pin_is_empty();
    cr_expect(is_back_at_base(before));
}

// One source serves the process; which one isn't a domain's to change.
Test(uncached, a_second_domain_with_another_source_is_refused_with_the_reason)
{
    const Messages messages;
    const Variable source("FI_REGCACHE_SOURCE", "none");
    Card card(over_pin());
    const Info info = find_info(over_pin());
    setenv("FI_REGCACHE_SOURCE", "userfaultfd", 1);
    Owned<fid_fabric> fabric;
    cr_assert(fi_fabric(info->fabric_attr, fabric.out(), nullptr) == 0);
    fid_domain *domain = nullptr;
    cr_expect(fi_domain(fabric.get(), info.get(), &domain, nullptr) == -FI_EBUSY);
    expect_one_warning(messages, {"another domain", "none"});
    cr_expect(card.close() == 0);
    Owned<fid_domain> later;
    cr_expect(fi_domain(fabric.get(), info.get(), later.out(), nullptr) == 0, "that one is closed");
}
