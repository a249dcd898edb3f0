// SPDX-License-Identifier: BSD-2-Clause
// When fi_getinfo offers regcache, for which hints, and under which names. What a domain does is tested elsewhere.
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

Info ask(const fi_info *hints, std::uint64_t flags = 0, int *error = nullptr)
{
    fi_info *list = nullptr;
    const int answer = fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, flags, hints, &list);
    if (error)
        *error = answer;
    return Info(answer == 0 ? list : nullptr);
}

Info hints_for(const char *provider, int mr_mode = kBasicModes)
{
    Info hints(fi_allocinfo());
    hints->caps = FI_MSG | FI_RMA;
    hints->domain_attr->mr_mode = mr_mode;
    if (provider)
        hints->fabric_attr->prov_name = strdup(provider);
    return hints;
}

// "provider fabric domain" of each.
std::vector<std::string> names(const Info &list)
{
    std::vector<std::string> found;
    for (const fi_info *info = list.get(); info; info = info->next)
        found.push_back(std::string(info->fabric_attr->prov_name) + ' ' + info->fabric_attr->name + ' ' +
                        info->domain_attr->name);
    return found;
}

bool offers_regcache(const Info &list)
{
    for (const std::string &name : names(list))
        if (name.find("regcache") != std::string::npos)
            return true;
    return false;
}

const std::vector<std::string> kBothOfPin{"regcache pin:pin pin0", "regcache pin:pin pin1"};

} // namespace

TestSuite(discovery, .init = need_pin);
// libfabric reads FI_PROVIDER once, so these set it before its first call.
TestSuite(discovery_by_environment);

Test(discovery, answers_to_its_name_in_the_hints)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    for (const char *name : {"regcache", "ReGCache"})
        cr_expect(names(ask(hints_for(name).get())) == kBothOfPin, "%s", name);
}

Test(discovery_by_environment, answers_to_FI_PROVIDER)
{
    setenv("FI_PROVIDER", "regcache", 1);
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    need_pin();
    cr_expect(names(ask(hints_for(nullptr).get())) == kBothOfPin);
}

Test(discovery_by_environment, answers_to_FI_PROVIDER_that_lists_several)
{
    setenv("FI_PROVIDER", "udp,REGCACHE", 1);
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    need_pin();
    cr_expect(offers_regcache(ask(hints_for(nullptr).get())));
}

Test(discovery, is_silent_when_nobody_asks)
{
    cr_expect(!offers_regcache(ask(nullptr)));
    cr_expect(!offers_regcache(ask(hints_for(nullptr).get())));
    for (const char *name : {"tcp", "pin", "ofi_rxm", "^tcp", "^regcache", "tcp;ofi_rxm"})
        cr_expect(!offers_regcache(ask(hints_for(name).get())), "%s", name);
}

Test(discovery_by_environment, is_silent_when_FI_PROVIDER_names_others)
{
    setenv("FI_PROVIDER", "tcp,shm", 1);
    cr_expect(!offers_regcache(ask(nullptr)));
}

Test(discovery_by_environment, is_silent_when_FI_PROVIDER_excludes_it)
{
    setenv("FI_PROVIDER", "^regcache", 1);
    cr_expect(!offers_regcache(ask(nullptr)));
    cr_expect(!offers_regcache(ask(hints_for("regcache").get())));
}

Test(discovery, offers_itself_to_all_when_told_so)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    const Variable offer("FI_REGCACHE_OFFER", "always");
    cr_expect(offers_regcache(ask(hints_for(nullptr).get())));
    cr_expect(!offers_regcache(ask(hints_for("tcp").get())), "tcp alone was asked for");
}

Test(discovery, is_listed_whether_asked_for_or_not)
{
    const Info all = ask(nullptr, FI_PROV_ATTR_ONLY);
    unsigned times = 0;
    for (const fi_info *info = all.get(); info; info = info->next)
        times += std::strcmp(info->fabric_attr->prov_name, "regcache") == 0;
    cr_expect(times == 1, "listed %u times", times);
}

// Its own question to libfabric reaches ofi_rxm, which asks for core providers, which reaches regcache again.
Test(discovery, never_stands_on_itself)
{
    for (const char *name : {"regcache", "regcache;ofi_rxm"}) {
        const Info found = ask(hints_for(name).get());
        cr_expect(found, "%s", name);
        for (const std::string &each : names(found))
            cr_expect(each.find(" regcache:") == std::string::npos && each.find("ofi_rxm:") == std::string::npos, "%s",
                      each.c_str());
    }
    const Variable lower("FI_REGCACHE_LOWER", "regcache");
    cr_expect(!ask(hints_for("regcache").get()));
}

Test(discovery, answers_threads_that_ask_at_once)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int round = 0; round < 50; ++round)
                wrong += names(ask(hints_for("regcache").get())) != kBothOfPin;
        });
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(wrong == 0, "%u answers were wrong", wrong.load());
}

Test(discovery, finds_a_domain_by_the_lower_provider_s_name)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    const Info hints = hints_for("regcache");
    hints->domain_attr->name = strdup("pin1");
    cr_expect(names(ask(hints.get())) == std::vector<std::string>{"regcache pin:pin pin1"});
    std::free(hints->domain_attr->name);
    hints->domain_attr->name = strdup("pin2");
    cr_expect(!ask(hints.get()));
}

Test(discovery, finds_a_fabric_by_its_own_name)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    const Info hints = hints_for("regcache");
    const auto found_as = [&](const char *name) {
        std::free(std::exchange(hints->fabric_attr->name, strdup(name)));
        return names(ask(hints.get()));
    };
    cr_expect(found_as("pin:pin") == kBothOfPin);
    cr_expect(found_as("PIN:pin") == kBothOfPin);
    cr_expect(found_as("pin:") == kBothOfPin, "any fabric of pin's");
    cr_expect(found_as("pin:another").empty());
    cr_expect(found_as("pin").empty(), "that is the lower provider's name for it");
    cr_expect(found_as("tcp:pin").empty());
    cr_expect(found_as("").empty());
    cr_expect(found_as(":").empty());
}

Test(discovery, what_it_offers_can_be_copied_and_opened)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    const Info found = ask(hints_for("regcache").get());
    cr_assert(found);
    const Info copy(fi_dupinfo(found.get()));
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    cr_assert(fi_fabric(copy->fabric_attr, fabric.out(), nullptr) == 0);
    cr_assert(fi_domain(fabric.get(), copy.get(), domain.out(), nullptr) == 0);
    // As hints, what was offered finds itself.
    const Info again = ask(copy.get());
    cr_expect(names(again) == std::vector<std::string>{"regcache pin:pin pin0"});
}

Test(discovery, leaves_the_hints_as_they_were)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin,tcp");
    const Info hints = hints_for("regcache");
    hints->fabric_attr->name = strdup("pin:pin");
    hints->domain_attr->name = strdup("pin0");
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->ep_attr->type = FI_EP_RDM;
    const auto bytes = [&] {
        std::string all;
        for (const auto &[start, size] : std::vector<std::pair<const void *, std::size_t>>{
                 {hints.get(), sizeof(fi_info)},
                 {hints->tx_attr, sizeof(fi_tx_attr)},
                 {hints->rx_attr, sizeof(fi_rx_attr)},
                 {hints->ep_attr, sizeof(fi_ep_attr)},
                 {hints->domain_attr, sizeof(fi_domain_attr)},
                 {hints->fabric_attr, sizeof(fi_fabric_attr)}})
            all.append(static_cast<const char *>(start), size);
        return all + hints->fabric_attr->name + hints->fabric_attr->prov_name + hints->domain_attr->name;
    };
    const std::string before = bytes();
    cr_expect(ask(hints.get()));
    cr_expect(bytes() == before);
}

Test(discovery, takes_hints_without_some_of_their_parts)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    fi_fabric_attr fabric{};
    char name[] = "regcache";
    fabric.prov_name = name;
    fi_info hints{};
    hints.caps = FI_MSG;
    hints.fabric_attr = &fabric;
    fi_domain_attr domain{};
    domain.mr_mode = kBasicModes;
    hints.domain_attr = &domain;
    cr_expect(names(ask(&hints)) == kBothOfPin);
    hints.caps = 0;
    cr_expect(names(ask(&hints)) == kBothOfPin, "no capabilities");
}

Test(discovery_by_environment, without_hints_everything_is_offered)
{
    setenv("FI_PROVIDER", "regcache", 1);
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    need_pin();
    cr_expect(names(ask(nullptr)) == kBothOfPin);
}

Test(discovery, hints_that_nobody_meets_find_nothing)
{
    const Variable lower("FI_REGCACHE_LOWER", "pin");
    const Info hints = hints_for("regcache");
    hints->ep_attr->type = FI_EP_SOCK_STREAM;
    int error = 0;
    cr_expect(!ask(hints.get(), 0, &error));
    cr_expect(error == -FI_ENODATA, "%s", fi_strerror(-error));
    hints->ep_attr->type = FI_EP_UNSPEC;
    hints->caps = FI_MULTICAST;
    cr_expect(!ask(hints.get(), 0, &error));
    cr_expect(error == -FI_ENODATA, "%s", fi_strerror(-error));
}

// Registrations end on a thread of the cache, so the lower domain must allow any thread.
Test(discovery, offers_domains_that_any_thread_may_use)
{
    const Variable lower("FI_REGCACHE_LOWER", "tcp,shm,pin");
    for (const fi_threading wished : {FI_THREAD_UNSPEC, FI_THREAD_SAFE, FI_THREAD_DOMAIN}) {
        const Info hints = hints_for("regcache");
        hints->domain_attr->threading = wished;
        const Info found = ask(hints.get());
        cr_expect(found, "threading %d", wished);
        for (const fi_info *info = found.get(); info; info = info->next)
            cr_expect(info->domain_attr->threading == FI_THREAD_SAFE || info->domain_attr->threading == FI_THREAD_UNSPEC,
                      "%s: threading %d", info->fabric_attr->name, info->domain_attr->threading);
    }
}
