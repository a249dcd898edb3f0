// SPDX-License-Identifier: BSD-2-Clause
// Which requests share a registration and which are passed through as they are. Rights are in rights.cpp, keys in keys.cpp.
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"

#include <cstring>

#include <criterion/criterion.h>

#include <rdma/fi_atomic.h>

using namespace regcache::test;

namespace {

fi_mr_attr describe(const iovec *pieces, std::size_t count, std::uint64_t access = kLocalRights)
{
    fi_mr_attr attr{};
    attr.mr_iov = pieces;
    attr.iov_count = count;
    attr.access = access;
    return attr;
}

// Makes the same request three times, the first two are closed again; how often pin was asked.
template <class Request>
std::uint64_t made_for_three(Request request)
{
    const std::uint64_t before = registered();
    for (int i = 0; i < 3; ++i)
        cr_expect(request(), "request %d", i);
    return registered() - before;
}

} // namespace

TestSuite(registering, .init = need_pin);

Test(registering, what_is_inside_a_registration_hits)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 8 * page_size());
    memory.fill('A');
    char *const start = memory.data();
    start[5 * page_size() + 17] = 'B';
    const Region whole = card.reg(start, memory.size());
    const Region same = card.reg(start, memory.size());
    const Region inside = card.reg(start + 3 * page_size(), 4 * page_size());
    const Region byte = card.reg(start + 5 * page_size() + 17, 1);
    cr_expect(registered() == 1);
    for (const Region *region : {&same, &inside, &byte}) {
        cr_expect(fi_mr_desc(region->get()) == fi_mr_desc(whole.get()));
        cr_expect(fi_mr_key(region->get()) == fi_mr_key(whole.get()));
        cr_expect(seen(*region, start + 5 * page_size() + 17) == 'B');
    }
}

Test(registering, what_reaches_beyond_a_registration_misses)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 8 * page_size());
    memory.fill('A');
    char *const start = memory.data();
    const Region middle = card.reg(start + 2 * page_size(), 2 * page_size());
    cr_expect(registered() == 1);
    const Region before = card.reg(start + 2 * page_size() - 1, 2);
    cr_expect(registered() == 2);
    const Region after = card.reg(start + 4 * page_size() - 1, 2);
    cr_expect(registered() == 3);
    const Region around = card.reg(start, memory.size());
    cr_expect(registered() == 4);
    for (const Region *region : {&middle, &before, &after, &around})
        cr_expect(seen(*region, start + 2 * page_size()) == 'A' || seen(*region, start + 4 * page_size()) == 'A');
    cr_expect(seen(before, start + 2 * page_size() - 1) == 'A');
    cr_expect(seen(after, start + 4 * page_size()) == 'A');
}

Test(registering, every_call_that_registers_hits)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 2 * page_size());
    iovec piece{memory.data(), memory.size()};
    const fi_mr_attr attr = describe(&piece, 1);
    for (int i = 0; i < 100; ++i) {
        Region reg, regv, regattr;
        cr_expect(fi_mr_reg(card.domain(), piece.iov_base, piece.iov_len, kLocalRights, 0, 0, 0, reg.out(), nullptr) == 0);
        cr_expect(fi_mr_regv(card.domain(), &piece, 1, kLocalRights, 0, 0, 0, regv.out(), nullptr) == 0);
        cr_expect(fi_mr_regattr(card.domain(), &attr, 0, regattr.out()) == 0);
    }
    cr_expect(registered() == 1);
}

// What was read with the structure of an older libfabric: what it lacks is whatever lies behind it.
Test(registering, fields_that_old_programs_do_not_set_change_nothing)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 2 * page_size());
    iovec piece{memory.data(), memory.size()};
    for (int i = 0; i < 200; ++i) {
        struct {
            fi_mr_attr attr;
            unsigned char behind[256];
        } request;
        std::memset(&request, 0x11 + i, sizeof request);
        request.attr.mr_iov = &piece;
        request.attr.iov_count = 1;
        request.attr.access = kLocalRights;
        request.attr.offset = 0;
        request.attr.auth_key_size = 0; // the key itself stays poisoned
        request.attr.context = nullptr;
        Region region;
        cr_expect(fi_mr_regattr(card.domain(), &request.attr, 0, region.out()) == 0);
    }
    cr_expect(registered() == 1, "%lu registrations", registered());
    pin_region asked{};
    pin->each([](void *out, const pin_region *region) { *static_cast<pin_region *>(out) = *region; return 1; }, &asked);
    cr_expect(asked.iface == FI_HMEM_SYSTEM && asked.auth_key_size == 0);
}

Test(registering, several_pieces_are_passed_through)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    const iovec pieces[] = {{memory.data(), 10}, {memory.data() + 2 * page_size(), 20}};
    Region region;
    cr_expect(made_for_three([&] {
        return region.close() == 0 && fi_mr_regv(card.domain(), pieces, 2, kLocalRights, 0, 0, 0, region.out(), nullptr) == 0;
    }) == 3);
    cr_expect(look(region).iov_count == 2);
    cr_expect(look(region).len == 30);
    cr_expect(seen(region, pieces[1].iov_base) == 'A');
}

Test(registering, an_offset_is_passed_through)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    Region region;
    cr_expect(made_for_three([&] {
        return region.close() == 0 &&
               fi_mr_reg(card.domain(), memory.data(), page_size(), kAllRights, 4096, 0, 0, region.out(), nullptr) == 0;
    }) == 3);
    cr_expect(look(region).offset == 4096);
}

Test(registering, flags_are_passed_through)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    for (const std::uint64_t flag : {std::uint64_t{FI_RMA_EVENT}, std::uint64_t{FI_RMA_PMEM}, std::uint64_t{1} << 50}) {
        Region region;
        cr_expect(made_for_three([&] {
            return region.close() == 0 &&
                   fi_mr_reg(card.domain(), memory.data(), page_size(), kAllRights, 0, 0, flag, region.out(), nullptr) == 0;
        }) == 3, "%#lx", flag);
        cr_expect(look(region).flags == flag);
    }
}

Test(registering, an_authorization_key_is_passed_through)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    const iovec piece{memory.data(), page_size()};
    fi_mr_attr attr = describe(&piece, 1);
    std::uint8_t key[] = "a key";
    attr.auth_key = key;
    attr.auth_key_size = sizeof(key);
    Region region;
    cr_expect(made_for_three([&] {
        region = card.regattr(attr);
        return bool(region);
    }) == 3);
    cr_expect(look(region).auth_key_size == sizeof(key));
}

Test(registering, device_memory_is_passed_through)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,hmem");
    Wish wish = over_pin();
    wish.caps |= FI_HMEM;
    wish.mr_mode |= FI_MR_HMEM;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    const iovec piece{memory.data(), page_size()};
    fi_mr_attr attr = describe(&piece, 1);
    attr.iface = FI_HMEM_CUDA;
    Region region;
    cr_expect(made_for_three([&] {
        region = card.regattr(attr);
        return bool(region);
    }) == 3);
    cr_expect(look(region).iface == FI_HMEM_CUDA);
    attr.iface = FI_HMEM_SYSTEM;
    cr_expect(made_for_three([&] { return bool(card.regattr(attr)); }) == 1, "system memory of the same domain is cached");
}

Test(registering, regions_that_are_bound_before_use_are_passed_through)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,endpoint");
    Wish wish = over_pin();
    wish.mr_mode |= FI_MR_ENDPOINT;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    Owned<fid_ep> ep;
    cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
    cr_expect(made_for_three([&] { return bool(card.reg(memory.data(), page_size())); }) == 3);
    const Region region = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_key(region.get()) == FI_KEY_NOTAVAIL);
    cr_expect(fi_mr_bind(region.get(), &ep->fid, 0) == 0);
    cr_expect(fi_mr_enable(region.get()) == 0);
    cr_expect(fi_mr_key(region.get()) != FI_KEY_NOTAVAIL, "enabling gave it one");
    cr_expect(seen_by_peer(fi_mr_key(region.get()), memory.data()) == 'A');
    expect_no_misuse();
}

Test(registering, regions_that_count_events_are_passed_through)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,rma_event");
    Wish wish = over_pin();
    wish.mr_mode |= FI_MR_RMA_EVENT;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    cr_expect(made_for_three([&] { return bool(card.reg(memory.data(), page_size())); }) == 3);
}

Test(registering, regions_that_are_refreshed_are_passed_through)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,mmu_notify");
    Wish wish = over_pin();
    wish.mr_mode |= FI_MR_MMU_NOTIFY;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    cr_expect(made_for_three([&] { return bool(card.reg(memory.data(), page_size())); }) == 3);
    const Region region = card.reg(memory.data(), page_size());
    const iovec piece{memory.data(), page_size()};
    cr_expect(fi_mr_refresh(region.get(), &piece, 1, 0) == 0);
    cr_expect(pin_count().refreshed == 1, "it reached pin");
}

Test(registering, two_domains_keep_apart)
{
    Card first(over_pin());
    Wish wish = over_pin();
    wish.domain = "pin1";
    Card second(wish), third(over_pin());
    const Mapping memory(Kind::Private, page_size());
    const Region a = first.reg(memory.data(), page_size());
    const Region b = second.reg(memory.data(), page_size());
    const Region c = third.reg(memory.data(), page_size());
    cr_expect(registered() == 3);
    cr_expect(look(a).domain != look(b).domain && look(b).domain != look(c).domain && look(a).domain != look(c).domain);
}

Test(registering, any_size_at_any_place_works)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 5 * page_size());
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory.data()[i] = static_cast<char>(i * 7 % 127 + 1);
    for (std::size_t at : {std::size_t{0}, std::size_t{1}, page_size() - 1, page_size(), 2 * page_size() + 100})
        for (std::size_t len : {std::size_t{1}, std::size_t{2}, page_size() - 1, page_size(), page_size() + 1, 2 * page_size()}) {
            const Region region = card.reg(memory.data() + at, len);
            cr_assert(region);
            cr_expect(seen(region, memory.data() + at) == memory.data()[at]);
            cr_expect(seen(region, memory.data() + at + len - 1) == memory.data()[at + len - 1]);
        }
}

Test(registering, memory_of_every_kind_works)
{
    Card card(over_pin());
    for (const Kind kind : all_kinds()) {
        try {
            const Mapping memory(kind, 4 * page_size());
            memory.fill('A');
            for (int i = 0; i < 3; ++i) {
                int error = 0;
                const Region region = card.reg(memory.data(), memory.size(), FI_SEND, &error);
                cr_expect(region && seen(region, memory.data() + page_size()) == 'A', "%s: %s", name_of(kind),
                          fi_strerror(-error));
            }
        } catch (const Unavailable &missing) {
            cr_log_info("%s: %s", name_of(kind), missing.what());
        }
    }
    static char data[1 << 16];
    const Region of_data = card.reg(data, sizeof data);
    cr_expect(of_data);
    cr_expect(on_stack(3 * page_size(), [&](char *stack, std::size_t len) {
        std::memset(stack, 'S', len);
        const Region region = card.reg(stack, len);
        return region && seen(region, stack + len - 1) == 'S';
    }));
}
