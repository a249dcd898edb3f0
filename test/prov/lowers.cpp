// SPDX-License-Identifier: BSD-2-Clause
// Over which providers of the installed libfabric regcache is offered, and what a choice of them means.
#include "prov/messages.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

Info ask(const fi_info *hints, std::uint64_t flags = 0)
{
    fi_info *list = nullptr;
    return Info(fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, flags, hints, &list) == 0 ? list : nullptr);
}

// Hints that name a provider and wish for nothing more.
Info any_of(const std::string &provider)
{
    Info hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup(provider.c_str());
    hints->mode = hints->domain_attr->mode = ~std::uint64_t{0};
    hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
    hints->domain_attr->threading = FI_THREAD_SAFE;
    return hints;
}

// "type fabric domain" of what one provider alone offers.
std::set<std::string> offers(const Info &list, const std::string &provider, const std::string &prefix = "")
{
    std::set<std::string> found;
    for (const fi_info *info = list.get(); info; info = info->next)
        if (provider == info->fabric_attr->prov_name)
            found.insert(std::to_string(info->ep_attr->type) + ' ' + prefix + info->fabric_attr->name + ' ' +
                         info->domain_attr->name);
    return found;
}

// Those that move data themselves: no layers over others, no hooks, not regcache.
std::vector<std::string> core_providers()
{
    std::vector<std::string> names;
    const Info all = ask(nullptr, FI_PROV_ATTR_ONLY);
    for (const fi_info *info = all.get(); info; info = info->next) {
        const std::string name = info->fabric_attr->prov_name;
        if (name.rfind("ofi_", 0) != 0 && name.rfind("off_", 0) != 0 && name != "lnx" && name != "regcache" &&
            std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    }
    return names;
}

// The lower providers of what regcache offers, in order.
std::vector<std::string> lowers_offered(const char *lower_list)
{
    const Variable lower("FI_REGCACHE_LOWER", lower_list);
    const Info list = ask(any_of("regcache").get());
    std::vector<std::string> lowers;
    for (const fi_info *info = list.get(); info; info = info->next) {
        const std::string name = info->fabric_attr->name;
        const std::string lower_name = name.substr(0, name.find(':'));
        if (std::strcmp(info->fabric_attr->prov_name, "regcache") != 0)
            continue; // layers over it
        if (lowers.empty() || lowers.back() != lower_name)
            lowers.push_back(lower_name);
    }
    return lowers;
}

using Names = std::vector<std::string>;

} // namespace

TestSuite(lowers, .init = show_warnings);

Test(lowers, every_core_provider_that_answers_is_offered)
{
    const Messages messages;
    unsigned answering = 0;
    for (const std::string &name : core_providers()) {
        const std::set<std::string> below = offers(ask(any_of(name).get()), name, name + ':');
        const Variable lower("FI_REGCACHE_LOWER", name);
        const std::set<std::string> ours = offers(ask(any_of("regcache").get()), "regcache");
        cr_expect(below == ours, "%s: %zu of its own, %zu over it", name.c_str(), below.size(), ours.size());
        answering += !below.empty();
    }
    cr_expect(answering >= 2, "only %u core providers answer here", answering);
    const Info list = ask(any_of("regcache").get());
    const auto without_choice = offers(list, "regcache");
    for (const std::string &name : core_providers())
        for (const std::string &each : offers(ask(any_of(name).get()), name, name + ':'))
            cr_expect(without_choice.count(each) == 1, "%s isn't offered unless it is chosen", each.c_str());
}

Test(lowers, a_list_chooses_and_orders)
{
    const Messages messages;
    cr_expect(lowers_offered("tcp") == Names{"tcp"});
    cr_expect((lowers_offered("udp,tcp") == Names{"udp", "tcp"}));
    cr_expect((lowers_offered("TCP,Udp") == Names{"tcp", "udp"}) || (lowers_offered("TCP,Udp") == Names{"TCP", "Udp"}));
}

Test(lowers, a_list_after_a_caret_leaves_out)
{
    const Messages messages;
    const Names all = lowers_offered("^regcache");
    cr_expect(std::find(all.begin(), all.end(), "tcp") != all.end());
    const Names some = lowers_offered("^tcp,SHM");
    cr_expect(!some.empty());
    for (const char *name : {"tcp", "shm"})
        cr_expect(std::find(some.begin(), some.end(), name) == some.end(), "%s", name);
}

Test(lowers, a_name_that_no_provider_has_is_said_once_and_finds_nothing)
{
    const Messages messages;
    for (int i = 0; i < 3; ++i)
        cr_expect(lowers_offered("tcp,nonsense").empty());
    cr_expect(messages.warnings({"FI_REGCACHE_LOWER", "nonsense", "tcp"}) == 1, "%s", messages.text().c_str());
    cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
}

// The lower providers that this libfabric brings for one machine: their domains open, and registrations work.
Test(lowers, domains_open_over_what_is_offered)
{
    const Messages messages;
    for (const char *name : {"tcp", "shm", "sockets", "udp"}) {
        const Variable lower("FI_REGCACHE_LOWER", name);
        const Info found = ask(any_of("regcache").get());
        if (!found) {
            cr_log_info("%s isn't offered here", name);
            continue;
        }
        Owned<fid_fabric> fabric;
        Owned<fid_domain> domain;
        cr_assert(fi_fabric(found->fabric_attr, fabric.out(), nullptr) == 0, "%s", name);
        cr_assert(fi_domain(fabric.get(), found.get(), domain.out(), nullptr) == 0, "%s", name);
        const Mapping memory(Kind::Private, 4 * page_size());
        for (int i = 0; i < 3; ++i) {
            Region region;
            const int error = fi_mr_reg(domain.get(), memory.data(), memory.size(), FI_SEND | FI_RECV, 0, 0, 0,
                                        region.out(), nullptr);
            cr_expect(error == 0, "%s: %s", name, fi_strerror(-error));
        }
    }
}

Test(lowers, are_asked_for_the_addresses_that_were_asked_for)
{
    const Messages messages;
    const Variable lower("FI_REGCACHE_LOWER", "tcp");
    const struct {
        const char *node, *service;
        std::uint64_t flags;
    } questions[] = {{"127.0.0.1", "47110", FI_SOURCE}, {"127.0.0.1", "47110", 0}, {nullptr, "47110", FI_SOURCE}, {nullptr, nullptr, 0}};
    for (const auto &question : questions) {
        const auto addresses = [&](const char *provider) {
            fi_info *list = nullptr;
            fi_getinfo(FI_VERSION(1, 14), question.node, question.service, question.flags, any_of(provider).get(), &list);
            const Info found(list);
            std::set<std::string> all;
            for (const fi_info *info = list; info; info = info->next)
                if (std::strcmp(info->fabric_attr->prov_name, provider) == 0)
                    all.insert(std::string(static_cast<const char *>(info->src_addr), info->src_addrlen) + '|' +
                               std::string(static_cast<const char *>(info->dest_addr), info->dest_addrlen));
            return all;
        };
        cr_expect(addresses("regcache") == addresses("tcp"), "node %s", question.node ? question.node : "none");
        cr_expect(!addresses("regcache").empty());
    }
}
