// SPDX-License-Identifier: BSD-2-Clause
// Does the pin provider notice fids that aren't its own, whatever call they come in, and wrong closes?
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"
#include "support/skip.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <criterion/criterion.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

using namespace regcache::test;

namespace {

// What a cache's own object looks like to the provider below.
struct fid foreign(std::size_t fclass)
{
    struct fid f{};
    f.fclass = fclass;
    return f;
}

} // namespace

TestSuite(pin_objects, .init = need_pin);

Test(pin_objects, opens_and_closes_everything)
{
    {
        Card card;
        Owned<fid_eq> eq;
        Owned<fid_wait> wait;
        Owned<fid_cq> cq;
        Owned<fid_cntr> counter;
        Owned<fid_av> av;
        Owned<fid_poll> poll;
        Owned<fid_stx> stx;
        Owned<fid_ep> srx;
        Owned<fid_pep> pep;
        Owned<fid_ep> sep;
        Owned<fid_ep> ep;
        fi_cq_attr cq_attr{};
        fi_cntr_attr counter_attr{};
        fi_av_attr av_attr{};
        fi_poll_attr poll_attr{};
        fi_wait_attr wait_attr{};
        fi_eq_attr eq_attr{};
        cr_assert(fi_wait_open(card.fabric(), &wait_attr, wait.out()) == 0);
        eq_attr.wait_set = cq_attr.wait_set = counter_attr.wait_set = wait.get();
        cr_assert(fi_eq_open(card.fabric(), &eq_attr, eq.out(), nullptr) == 0);
        cr_assert(fi_cq_open(card.domain(), &cq_attr, cq.out(), nullptr) == 0);
        cr_assert(fi_cntr_open(card.domain(), &counter_attr, counter.out(), nullptr) == 0);
        cr_assert(fi_av_open(card.domain(), &av_attr, av.out(), nullptr) == 0);
        cr_assert(fi_poll_open(card.domain(), &poll_attr, poll.out()) == 0);
        cr_assert(fi_poll_add(poll.get(), &cq->fid, 0) == 0);
        cr_assert(fi_stx_context(card.domain(), card.info()->tx_attr, stx.out(), nullptr) == 0);
        cr_assert(fi_srx_context(card.domain(), card.info()->rx_attr, srx.out(), nullptr) == 0);
        cr_assert(fi_passive_ep(card.fabric(), card.info(), pep.out(), nullptr) == 0);
        cr_assert(fi_pep_bind(pep.get(), &eq->fid, 0) == 0);
        cr_assert(fi_listen(pep.get()) == 0);
        cr_assert(fi_scalable_ep(card.domain(), card.info(), sep.out(), nullptr) == 0);
        cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
        cr_assert(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV) == 0);
        cr_assert(fi_ep_bind(ep.get(), &counter->fid, FI_READ) == 0);
        cr_assert(fi_ep_bind(ep.get(), &av->fid, 0) == 0);
        cr_assert(fi_ep_bind(ep.get(), &srx->fid, 0) == 0);
        cr_assert(fi_ep_bind(ep.get(), &stx->fid, 0) == 0);
        cr_assert(fi_enable(ep.get()) == 0);
        struct fid *waited[] = {&cq->fid, &eq->fid};
        cr_assert(fi_trywait(card.fabric(), waited, 2) == 0);
        fi_atomic_attr atomic_attr{};
        cr_assert(fi_query_atomic(card.domain(), FI_UINT64, FI_SUM, &atomic_attr, 0) == 0);
        fi_collective_attr collective_attr{};
        cr_assert(fi_query_collective(card.domain(), FI_BARRIER, &collective_attr, 0) == 0);
        void *ops = nullptr;
        cr_expect(fi_open_ops(&card.domain()->fid, "pin_ops", 0, &ops, nullptr) == 0);
        cr_expect(ops == pin);
        cr_expect(fi_open_ops(&card.domain()->fid, "something else", 0, &ops, nullptr) == -FI_ENOSYS);
        cr_expect(pin_count().objects == 13);
        cr_expect(fi_send(ep.get(), nullptr, 0, nullptr, 0, nullptr) == -FI_ENOSYS);
    }
    cr_expect(pin_count().objects == 0);
    cr_expect(pin_count().foreign_fids == 0);
    cr_expect(pin_count().double_closes == 0);
    cr_expect(pin_count().calls_after_close == 0);
}

Test(pin_objects, counts_a_foreign_fid_in_any_call)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    fid_domain upper_domain{};
    upper_domain.fid = foreign(FI_CLASS_DOMAIN);
    fid_fabric upper_fabric{};
    upper_fabric.fid = foreign(FI_CLASS_FABRIC);
    fid_wait upper_wait{};
    upper_wait.fid = foreign(FI_CLASS_WAIT);
    struct fid upper_eq = foreign(FI_CLASS_EQ);
    struct fid upper_cq = foreign(FI_CLASS_CQ);
    struct fid upper_ep = foreign(FI_CLASS_EP);

    std::uint64_t seen = 0;
    const auto is_counted = [&] { return pin_count().foreign_fids == ++seen; };
    Owned<fid_cq> cq;
    fi_cq_attr cq_attr{};
    cr_assert(fi_cq_open(card.domain(), &cq_attr, cq.out(), nullptr) == 0);
    fid_cq *other_cq = nullptr;
    // Pin's own operations called with the upper object.
    cr_expect(card.domain()->ops->cq_open(&upper_domain, &cq_attr, &other_cq, nullptr) == -FI_EINVAL);
    cr_expect(is_counted());
    cr_expect(pin->newest_foreign_class() == FI_CLASS_DOMAIN);
    fid_mr *mr = nullptr;
    cr_expect(card.domain()->mr->reg(&upper_domain.fid, memory.data(), 1, FI_SEND, 0, 0, 0, &mr, nullptr) == -FI_EINVAL);
    cr_expect(is_counted());
    // An info that names upper objects.
    fid_ep *ep = nullptr;
    card.info()->domain_attr->domain = &upper_domain;
    cr_expect(fi_endpoint(card.domain(), card.info(), &ep, nullptr) == -FI_EINVAL);
    cr_expect(is_counted());
    card.info()->domain_attr->domain = nullptr;
    card.info()->fabric_attr->fabric = &upper_fabric;
    fid_pep *pep = nullptr;
    cr_expect(fi_passive_ep(card.fabric(), card.info(), &pep, nullptr) == -FI_EINVAL);
    cr_expect(is_counted());
    card.info()->fabric_attr->fabric = nullptr;
    // Upper objects bound, waited for, or named in attributes.
    Owned<fid_ep> own_ep;
    cr_assert(fi_endpoint(card.domain(), card.info(), own_ep.out(), nullptr) == 0);
    cr_expect(fi_ep_bind(own_ep.get(), &upper_cq, FI_TRANSMIT) == -FI_EINVAL);
    cr_expect(is_counted());
    cr_expect(fi_domain_bind(card.domain(), &upper_eq, FI_REG_MR) == -FI_EINVAL);
    cr_expect(is_counted());
    Region region = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_bind(region.get(), &upper_ep, 0) == -FI_EINVAL);
    cr_expect(is_counted());
    struct fid *waited[] = {&cq->fid, &upper_cq};
    cr_expect(fi_trywait(card.fabric(), waited, 2) == -FI_EINVAL);
    cr_expect(is_counted());
    cq_attr.wait_set = &upper_wait;
    cr_expect(fi_cq_open(card.domain(), &cq_attr, &other_cq, nullptr) == -FI_EINVAL);
    cr_expect(is_counted());
    pin->reset();
    cr_expect(pin_count().foreign_fids == 0);
}

Test(pin_objects, counts_closing_twice_and_calls_after_it)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    Region region = card.reg(memory.data(), page_size());
    fid_mr *mr = region.release();
    cr_expect(fi_close(&mr->fid) == 0);
    cr_expect(fi_close(&mr->fid) == -FI_EINVAL);
    cr_expect(pin_count().double_closes == 1);
    cr_expect(fi_mr_enable(mr) == -FI_EINVAL);
    cr_expect(pin_count().calls_after_close == 1);
    cr_expect(pin_count().deregistered == 1);
}

Test(pin_objects, is_busy_while_needed)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    {
        const Region region = card.reg(memory.data(), page_size());
        cr_expect(card.close() == -FI_EBUSY);
    }
    {
        Owned<fid_cq> cq;
        fi_cq_attr attr{};
        cr_assert(fi_cq_open(card.domain(), &attr, cq.out(), nullptr) == 0);
        Owned<fid_ep> ep;
        cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
        cr_assert(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT) == 0);
        cr_expect(cq.close() == -FI_EBUSY);
        cr_expect(fi_close(&card.fabric()->fid) == -FI_EBUSY);
    }
    cr_expect(card.close() == 0);
}
