// SPDX-License-Identifier: BSD-2-Clause
// Every call that regcache forwards, over pin, which counts each object that isn't its own. When objects may be closed is in
// closing.cpp.
#include "prov/over_pin.hpp"

#include <cstring>
#include <string>

#include <criterion/criterion.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

using namespace regcache::test;

namespace {

// Opens one thing of each kind and binds what can be bound.
void use_everything(Card &card)
{
    Owned<fid_wait> wait;
    Owned<fid_eq> eq;
    Owned<fid_cq> cq;
    Owned<fid_cntr> counter;
    Owned<fid_av> av;
    Owned<fid_poll> poll;
    Owned<fid_stx> stx;
    Owned<fid_ep> srx, sep, ep, ep2;
    Owned<fid_pep> pep;
    fi_wait_attr wait_attr{};
    fi_eq_attr eq_attr{};
    fi_cq_attr cq_attr{};
    fi_cntr_attr counter_attr{};
    fi_av_attr av_attr{};
    fi_poll_attr poll_attr{};

    cr_assert(fi_wait_open(card.fabric(), &wait_attr, wait.out()) == 0);
    eq_attr.wait_set = cq_attr.wait_set = counter_attr.wait_set = wait.get();
    cr_assert(fi_eq_open(card.fabric(), &eq_attr, eq.out(), nullptr) == 0);
    cr_assert(fi_domain_bind(card.domain(), &eq->fid, 0) == 0);
    cr_assert(fi_passive_ep(card.fabric(), card.info(), pep.out(), nullptr) == 0);
    cr_assert(fi_pep_bind(pep.get(), &eq->fid, 0) == 0);
    cr_assert(fi_listen(pep.get()) == 0);

    cr_assert(fi_cq_open(card.domain(), &cq_attr, cq.out(), nullptr) == 0);
    cr_assert(fi_cntr_open(card.domain(), &counter_attr, counter.out(), nullptr) == 0);
    cr_assert(fi_av_open(card.domain(), &av_attr, av.out(), nullptr) == 0);
    cr_assert(fi_poll_open(card.domain(), &poll_attr, poll.out()) == 0);
    cr_assert(fi_poll_add(poll.get(), &cq->fid, 0) == 0);
    cr_assert(fi_poll_del(poll.get(), &cq->fid, 0) == 0);
    cr_assert(fi_stx_context(card.domain(), card.info()->tx_attr, stx.out(), nullptr) == 0);
    cr_assert(fi_srx_context(card.domain(), card.info()->rx_attr, srx.out(), nullptr) == 0);
    cr_assert(fi_scalable_ep(card.domain(), card.info(), sep.out(), nullptr) == 0);
    cr_assert(fi_endpoint2(card.domain(), card.info(), ep2.out(), 0, nullptr) == 0);
    cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
    for (struct fid *other : {&cq->fid, &counter->fid, &av->fid, &srx->fid, &stx->fid, &eq->fid})
        cr_assert(fi_ep_bind(ep.get(), other, other == &cq->fid ? FI_TRANSMIT | FI_RECV : other == &counter->fid ? FI_READ : 0) == 0);
    cr_assert(fi_enable(ep.get()) == 0);

    struct fid *waited[] = {&cq->fid, &eq->fid};
    cr_assert(fi_trywait(card.fabric(), waited, 2) == 0);
    fi_atomic_attr atomic_attr{};
    cr_assert(fi_query_atomic(card.domain(), FI_UINT64, FI_SUM, &atomic_attr, 0) == 0);
    cr_assert(atomic_attr.size == 8);
    cr_assert(fi_query_atomic(card.domain(), FI_FLOAT, FI_SUM, &atomic_attr, 0) == -FI_EOPNOTSUPP);
    fi_collective_attr collective_attr{};
    cr_assert(fi_query_collective(card.domain(), FI_BARRIER, &collective_attr, 0) == 0);
    cr_assert(collective_attr.max_members == 1);

    const Mapping memory(Kind::Private, 2 * page_size());
    memory.fill('A');
    const Region local = card.reg(memory.data(), page_size());
    const Region remote = card.reg(memory.data() + page_size(), page_size());
    std::memcpy(memory.data(), "hello", 5);
    cr_assert(fi_write(ep.get(), memory.data(), 5, fi_mr_desc(local.get()), 0,
                       reinterpret_cast<std::uint64_t>(memory.data() + page_size()), fi_mr_key(remote.get()), nullptr) == 0);
    cr_assert(std::memcmp(memory.data() + page_size(), "hello", 5) == 0);
}

} // namespace

TestSuite(objects, .init = need_pin);

Test(objects, every_forwarded_call_has_the_lower_object_in_it)
{
    {
        Card card(over_pin());
        use_everything(card);
        expect_no_misuse();
        cr_expect(card.close() == 0);
    }
    expect_pin_is_empty();
}

// What libfabric's man pages let an application put into an fi_info, on its way to any call that takes one.
Test(objects, an_info_that_names_our_objects_names_the_lower_ones_below)
{
    {
        Card card(over_pin());
        card.info()->fabric_attr->fabric = card.fabric();
        card.info()->domain_attr->domain = card.domain();
        use_everything(card);
        Owned<fid_domain> second;
        cr_expect(fi_domain(card.fabric(), card.info(), second.out(), nullptr) == 0);
        Owned<fid_domain> third;
        cr_expect(fi_domain2(card.fabric(), card.info(), third.out(), 0, nullptr) == 0);
        fi_info *found = nullptr;
        cr_expect(fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, card.info(), &found) == 0);
        const Info again(found);
        expect_no_misuse();
        for (const fi_info *info = again.get(); info; info = info->next) {
            cr_expect(!info->fabric_attr->fabric || info->fabric_attr->fabric == card.fabric());
            cr_expect(!info->domain_attr->domain || info->domain_attr->domain == card.domain());
        }
        card.info()->fabric_attr->fabric = nullptr;
        card.info()->domain_attr->domain = nullptr;
    }
    expect_pin_is_empty();
}

// libfabric names objects that are open in what it finds later: never those below ours, which would go round the cache.
Test(objects, what_is_found_later_names_no_lower_object)
{
    for (const char *lower : {"tcp", "shm", "udp", "sockets"}) {
        if (!find_info(over(lower)))
            continue;
        Card card(over(lower));
        for (const bool is_named : {false, true}) {
            const Info hints(fi_dupinfo(card.info()));
            if (is_named) {
                hints->fabric_attr->fabric = card.fabric();
                hints->domain_attr->domain = card.domain();
            }
            fi_info *found = nullptr;
            cr_assert(fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints.get(), &found) == 0, "%s", lower);
            const Info list(found);
            for (const fi_info *info = list.get(); info; info = info->next) {
                cr_expect(!info->fabric_attr->fabric || info->fabric_attr->fabric == card.fabric(), "%s", lower);
                cr_expect(!info->domain_attr->domain || info->domain_attr->domain == card.domain(), "%s", lower);
            }
            hints->fabric_attr->fabric = nullptr;
            hints->domain_attr->domain = nullptr;
        }
    }
}

// Such tables take our objects as arguments, and know only their own.
Test(objects, operations_opened_by_name_are_refused)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    const Region region = card.reg(memory.data(), page_size());
    void *table = nullptr;
    for (struct fid *object : {&card.fabric()->fid, &card.domain()->fid, &region->fid}) {
        cr_expect(fi_open_ops(object, "pin_ops", 0, &table, nullptr) == -FI_ENOSYS);
        cr_expect(fi_set_ops(object, "pin_ops", 0, nullptr, nullptr) == -FI_ENOSYS);
        cr_expect(!table);
    }
    expect_no_misuse();
}

Test(objects, commands_reach_the_lower_object)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    const Region region = card.reg(memory.data(), page_size());
    std::uint64_t base = 1, raw = 0, mapped = 0;
    std::size_t size = 0;
    cr_expect(fi_mr_raw_attr(region.get(), &base, reinterpret_cast<std::uint8_t *>(&raw), &size, 0) == -FI_ETOOSMALL);
    cr_expect(size == sizeof(raw));
    cr_expect(fi_mr_raw_attr(region.get(), &base, reinterpret_cast<std::uint8_t *>(&raw), &size, 0) == 0);
    cr_expect(raw == fi_mr_key(region.get()));
    cr_expect(fi_mr_map_raw(card.domain(), base, reinterpret_cast<std::uint8_t *>(&raw), size, &mapped, 0) == 0);
    cr_expect(mapped == raw);
    cr_expect(fi_mr_unmap_key(card.domain(), mapped) == 0);
    cr_expect(fi_control(&card.domain()->fid, FI_GETWAIT, nullptr) == -FI_ENOSYS, "as pin answers");
    cr_expect(fi_control(&card.fabric()->fid, FI_GETWAIT, nullptr) == -FI_ENOSYS);
    cr_expect(fi_control(&region->fid, FI_GETWAIT, nullptr) == -FI_ENOSYS);
    // A region that is ready needs no enabling, and pages that are pinned no refreshing.
    cr_expect(fi_mr_enable(region.get()) == 0);
    const iovec piece{memory.data(), page_size()};
    cr_expect(fi_mr_refresh(region.get(), &piece, 1, 0) == 0);
    cr_expect(seen(region, memory.data()) == 'A');
    expect_no_misuse();
}

Test(objects, a_bound_region_is_shared_no_more)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    Owned<fid_cntr> counter;
    fi_cntr_attr attr{};
    cr_assert(fi_cntr_open(card.domain(), &attr, counter.out(), nullptr) == 0);
    const Region bound = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_bind(bound.get(), &counter->fid, FI_REMOTE_WRITE) == 0);
    const Region other = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_desc(bound.get()) != fi_mr_desc(other.get()));
    const Region third = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_desc(third.get()) == fi_mr_desc(other.get()));
    cr_expect(fi_mr_bind(third.get(), &counter->fid, FI_REMOTE_WRITE) == -FI_EOPNOTSUPP, "two handles have it");
    expect_no_misuse();
}

Test(objects, events_of_registering_are_refused)
{
    Card card(over_pin());
    Owned<fid_eq> eq;
    fi_eq_attr attr{};
    cr_assert(fi_eq_open(card.fabric(), &attr, eq.out(), nullptr) == 0);
    cr_expect(fi_domain_bind(card.domain(), &eq->fid, FI_REG_MR) == -FI_EOPNOTSUPP);
    cr_expect(eq.close() == 0, "nothing of it stays bound");
}

Test(objects, contexts_and_classes_are_the_application_s)
{
    const Info info = find_info(over_pin());
    int of_fabric = 0, of_domain = 0;
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    cr_assert(fi_fabric(info->fabric_attr, fabric.out(), &of_fabric) == 0);
    cr_assert(fi_domain(fabric.get(), info.get(), domain.out(), &of_domain) == 0);
    cr_expect(fabric->fid.context == &of_fabric && fabric->fid.fclass == FI_CLASS_FABRIC);
    cr_expect(domain->fid.context == &of_domain && domain->fid.fclass == FI_CLASS_DOMAIN);
    cr_expect(fabric->api_version == FI_VERSION(1, 14));
    const Mapping memory(Kind::Private, page_size());
    int contexts[3] = {};
    Region regions[3];
    for (int i = 0; i < 3; ++i) {
        cr_assert(fi_mr_reg(domain.get(), memory.data(), page_size(), FI_SEND, 0, 0, 0, regions[i].out(), &contexts[i]) == 0);
        cr_expect(regions[i]->fid.context == &contexts[i] && regions[i]->fid.fclass == FI_CLASS_MR);
    }
    cr_expect(regions[0].get() != regions[1].get());
    cr_expect(registered() == 1);
}

Test(objects, arguments_that_are_missing_are_refused)
{
    Card card(over_pin());
    fid_ep *ep = nullptr;
    fid_pep *pep = nullptr;
    fid_domain *domain = nullptr;
    fid_mr *region = nullptr;
    cr_expect(fi_endpoint(card.domain(), nullptr, &ep, nullptr) == -FI_EINVAL);
    cr_expect(fi_endpoint2(card.domain(), nullptr, &ep, 0, nullptr) == -FI_EINVAL);
    cr_expect(fi_scalable_ep(card.domain(), nullptr, &ep, nullptr) == -FI_EINVAL);
    cr_expect(fi_passive_ep(card.fabric(), nullptr, &pep, nullptr) == -FI_EINVAL);
    cr_expect(fi_domain(card.fabric(), nullptr, &domain, nullptr) == -FI_EINVAL);
    fi_info empty{};
    cr_expect(fi_domain(card.fabric(), &empty, &domain, nullptr) == -FI_EINVAL);
    cr_expect(fi_mr_regattr(card.domain(), nullptr, 0, &region) == -FI_EINVAL);
    fi_mr_attr no_memory{};
    cr_expect(fi_mr_regattr(card.domain(), &no_memory, 0, &region) == -FI_EINVAL);
    cr_expect(fi_mr_reg(card.domain(), "", 0, FI_SEND, 0, 0, 0, &region, nullptr) == -FI_EINVAL, "as pin answers");
    cr_expect(fi_mr_reg(card.domain(), reinterpret_cast<void *>(UINTPTR_MAX - 10), 100, FI_SEND, 0, 0, 0, &region, nullptr) ==
              -FI_EINVAL);
    for (const char *name : {"", "pin", "nobody:pin", ":pin"}) {
        fi_fabric_attr attr = *card.info()->fabric_attr;
        std::string copy = name;
        attr.name = copy.data();
        attr.fabric = nullptr;
        fid_fabric *fabric = nullptr;
        cr_expect(fi_fabric(&attr, &fabric, nullptr) < 0, "'%s'", name);
    }
    fi_fabric_attr attr = *card.info()->fabric_attr;
    attr.name = nullptr;
    fid_fabric *fabric = nullptr;
    cr_expect(fi_fabric(&attr, &fabric, nullptr) == -FI_EINVAL);
    expect_no_misuse();
}
