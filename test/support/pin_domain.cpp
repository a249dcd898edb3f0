// SPDX-License-Identifier: BSD-2-Clause
// How the pin provider is found, its registration modes and events, and its transfers.
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"

#include <cstdlib>
#include <cstring>

#include <criterion/criterion.h>

using namespace regcache::test;

TestSuite(pin_domain, .init = need_pin);

Test(pin_domain, moves_bytes_between_registrations)
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
    cr_expect(pin_count().foreign_descs == 1);
    cr_expect(fi_write(ep.get(), source, 5, nullptr, 0, address, fi_mr_key(remote.get()), nullptr) == -FI_EINVAL);
}

Test(pin_domain, an_endpoint_region_has_no_key_until_enabled)
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

Test(pin_domain, a_bound_event_queue_hears_of_each_registration)
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

Test(pin_domain, answers_only_when_named)
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
