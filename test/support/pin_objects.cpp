// SPDX-License-Identifier: BSD-2-Clause
// Does the pin provider notice fids that aren't its own, whatever call they come in, and wrong closes?
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/pin.h"
#include "support/skip.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <criterion/criterion.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

using namespace regcache::test;

namespace {

const pin_ops *pin;

void find_pin()
{
    pin = pin_find();
    cr_assert(pin, "libfabric doesn't load libpin-fi.so from FI_PROVIDER_PATH");
    char why[256];
    if (pin->unusable(why, sizeof(why)))
        skip(why);
    pin->reset();
}

pin_counters count()
{
    pin_counters counters;
    pin->counters(&counters);
    return counters;
}

// What a cache's own object looks like to the provider below.
struct fid foreign(std::size_t fclass)
{
    struct fid f{};
    f.fclass = fclass;
    return f;
}

} // namespace

TestSuite(pin_objects, .init = find_pin);

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
        cr_expect(count().objects == 13);
        cr_expect(fi_send(ep.get(), nullptr, 0, nullptr, 0, nullptr) == -FI_ENOSYS);
    }
    cr_expect(count().objects == 0);
    cr_expect(count().foreign_fids == 0);
    cr_expect(count().double_closes == 0);
    cr_expect(count().calls_after_close == 0);
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
    const auto is_counted = [&] { return count().foreign_fids == ++seen; };
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
    cr_expect(count().foreign_fids == 0);
}

Test(pin_objects, counts_closing_twice_and_calls_after_it)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    Region region = card.reg(memory.data(), page_size());
    fid_mr *mr = region.release();
    cr_expect(fi_close(&mr->fid) == 0);
    cr_expect(fi_close(&mr->fid) == -FI_EINVAL);
    cr_expect(count().double_closes == 1);
    cr_expect(fi_mr_enable(mr) == -FI_EINVAL);
    cr_expect(count().calls_after_close == 1);
    cr_expect(count().deregistered == 1);
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

Test(pin_objects, moves_bytes_between_registrations)
{
    Card card;
    const Mapping memory(Kind::Private, 2 * page_size());
    memory.fill('A');
    char *source = memory.data();
    char *target = memory.data() + page_size();
    const Region local = card.reg(source, page_size());
    const Region remote = card.reg(target, page_size());
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_MSG;
    Owned<fid_cq> cq;
    cr_assert(fi_cq_open(card.domain(), &attr, cq.out(), nullptr) == 0);
    Owned<fid_cntr> counter;
    fi_cntr_attr counter_attr{};
    cr_assert(fi_cntr_open(card.domain(), &counter_attr, counter.out(), nullptr) == 0);
    Owned<fid_ep> ep;
    cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
    cr_assert(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT) == 0);
    cr_assert(fi_ep_bind(ep.get(), &counter->fid, FI_READ) == 0);
    cr_assert(fi_enable(ep.get()) == 0);

    std::memcpy(source, "hello", 5);
    const auto address = reinterpret_cast<std::uint64_t>(target);
    int context = 0;
    cr_assert(fi_write(ep.get(), source, 5, fi_mr_desc(local.get()), 0, address, fi_mr_key(remote.get()), &context) == 0);
    cr_expect(std::memcmp(target, "helloA", 6) == 0);
    fi_cq_msg_entry entry{};
    cr_expect(fi_cq_sread(cq.get(), &entry, 1, nullptr, 1000) == 1);
    cr_expect(entry.op_context == &context && entry.len == 5 && (entry.flags & FI_WRITE));
    cr_expect(fi_cq_read(cq.get(), &entry, 1) == -FI_EAGAIN);

    std::memcpy(target, "world", 5);
    cr_assert(fi_read(ep.get(), source, 5, fi_mr_desc(local.get()), 0, address, fi_mr_key(remote.get()), nullptr) == 0);
    cr_expect(std::memcmp(source, "worldA", 6) == 0);
    cr_expect(fi_cntr_wait(counter.get(), 1, 1000) == 0);
    cr_expect(fi_inject_write(ep.get(), "inject", 6, 0, address, fi_mr_key(remote.get())) == 0);
    cr_expect(std::memcmp(target, "injectA", 7) == 0);

    // A handle of somebody else's is no descriptor.
    int upper = 0;
    cr_expect(fi_write(ep.get(), source, 5, &upper, 0, address, fi_mr_key(remote.get()), nullptr) == -FI_EINVAL);
    cr_expect(count().foreign_descs == 1);
    cr_expect(fi_write(ep.get(), source, 5, nullptr, 0, address, fi_mr_key(remote.get()), nullptr) == -FI_EINVAL);
}

Test(pin_objects, an_endpoint_region_has_no_key_until_enabled)
{
    setenv("FI_PIN_MR_MODE", "local,virt_addr,allocated,prov_key,endpoint", 1);
    Wish wish;
    cr_expect(!find_info(wish), "the application doesn't allow FI_MR_ENDPOINT");
    wish.mr_mode |= FI_MR_ENDPOINT;
    Card card(wish);
    const Mapping memory(Kind::Private, page_size());
    Owned<fid_ep> ep;
    cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
    const Region region = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_key(region.get()) == FI_KEY_NOTAVAIL);
    cr_expect(fi_mr_enable(region.get()) == -FI_EINVAL);
    cr_expect(fi_mr_bind(region.get(), &ep->fid, 0) == 0);
    cr_expect(fi_mr_enable(region.get()) == 0);
    cr_expect(fi_mr_key(region.get()) != FI_KEY_NOTAVAIL);
    char byte;
    cr_expect(pin->remote_read(fi_mr_key(region.get()), reinterpret_cast<std::uint64_t>(memory.data()), &byte, 1) == 1);
    unsetenv("FI_PIN_MR_MODE");
}

Test(pin_objects, a_bound_event_queue_hears_of_each_registration)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    Owned<fid_eq> eq;
    fi_eq_attr attr{};
    cr_assert(fi_eq_open(card.fabric(), &attr, eq.out(), nullptr) == 0);
    cr_assert(fi_domain_bind(card.domain(), &eq->fid, FI_REG_MR) == 0);
    {
        const Region region = card.reg(memory.data(), page_size());
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        cr_expect(fi_eq_read(eq.get(), &event, &entry, sizeof(entry), 0) == sizeof(entry));
        cr_expect(event == FI_MR_COMPLETE);
        cr_expect(entry.fid == &region->fid);
    }
    cr_expect(eq.close() == -FI_EBUSY, "the domain needs it");
    cr_expect(card.close() == -FI_EBUSY, "the domain closes, the fabric has the queue");
    cr_expect(eq.close() == 0);
}

Test(pin_objects, answers_only_when_named)
{
    Wish wish;
    wish.provider = "";
    fi_info *list = nullptr;
    cr_assert(fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, nullptr, &list) == 0);
    const Info all(list);
    for (const fi_info *info = list; info; info = info->next)
        cr_expect(!std::strstr(info->fabric_attr->prov_name, "pin"), "%s", info->fabric_attr->prov_name);
    wish.provider = "pin";
    wish.domain = "pin1";
    Card card(wish);
    cr_expect(std::strcmp(card.info()->domain_attr->name, "pin1") == 0);
    wish.domain = "pin2";
    cr_expect(!find_info(wish));
    wish.domain = "";
    wish.mr_mode = FI_MR_LOCAL;
    cr_expect(!find_info(wish), "the provider's keys and addresses aren't allowed");
    wish.caps = FI_MSG;
    cr_expect(find_info(wish), "which concern remote access only");
}
