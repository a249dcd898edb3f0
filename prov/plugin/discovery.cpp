// SPDX-License-Identifier: BSD-2-Clause
// Asks libfabric for the lower providers, one after the other, and renames what they answer.
#include "plugin/discovery.hpp"

#include "fid/fabric.hpp"
#include "ofi/names.hpp"
#include "ofi/op.hpp"
#include "plugin/parameters.hpp"
#include "sys/log.hpp"

#include <algorithm>
#include <cstdlib>

namespace regcache {
namespace {

// Flags that libfabric's own layered providers use; not in a public header, the same from 1.17 to 2.6.
constexpr std::uint64_t kCoreOnly = std::uint64_t{1} << 59;
constexpr std::uint64_t kHidden = std::uint64_t{1} << 60; // also those that FI_PROVIDER hides

// Asking libfabric for lower providers makes it ask us: that question isn't ours to answer.
thread_local bool is_asking = false;

constexpr int kOldModes = FI_MR_BASIC | FI_MR_SCALABLE;

int ask(std::uint32_t version, const char *node, const char *service, std::uint64_t flags, const fi_info *hints,
        InfoPtr &found) noexcept
{
    fi_info *infos = nullptr;
    is_asking = true;
    const int error = fi_getinfo(version, node, service, flags, hints, &infos);
    is_asking = false;
    found.reset(infos);
    return error;
}

bool names_us(const std::string &layers)
{
    const auto parts = split(layers, ';');
    return std::any_of(parts.begin(), parts.end(), [](const auto &part) { return is_same_name(part, kProviderName); });
}

bool is_asked_for(const fi_info *hints)
{
    if (const char *const filter = std::getenv("FI_PROVIDER"); filter && filter[0] != '^') {
        const auto names = split(filter, ',');
        if (std::any_of(names.begin(), names.end(), names_us))
            return true;
    }
    return hints && hints->fabric_attr && hints->fabric_attr->prov_name && hints->fabric_attr->prov_name[0] != '^' &&
           names_us(hints->fabric_attr->prov_name);
}

// Layered ones, and those that work for others only, go by these names.
bool is_core(std::string_view name) noexcept
{
    return !name.starts_with("ofi_") && !name.starts_with("off_") && !is_same_name(name, "lnx") &&
           !is_same_name(name, kProviderName) && name.find(';') == std::string_view::npos;
}

// The core providers of this libfabric, in its order of preference. With this flag alone libfabric asks none of them, so that
// those that answer only when they are named are listed too.
std::vector<std::string> core_providers(std::uint32_t version)
{
    InfoPtr found;
    std::vector<std::string> names;
    if (ask(version, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, found) != 0)
        return names;
    for (const fi_info *each = found.get(); each; each = each->next) {
        const char *const name = each->fabric_attr ? each->fabric_attr->prov_name : nullptr;
        if (name && is_core(name) && std::find(names.begin(), names.end(), name) == names.end())
            names.emplace_back(name);
    }
    return names;
}

// Those that the user wants, in libfabric's order, or in the user's own where they are listed. Throws Error for a name that
// no provider has.
std::vector<std::string> wanted_providers(const Parameters &parameters, std::uint32_t version)
{
    const std::vector<std::string> there = core_providers(version);
    const auto same = [](const std::string &a) { return [&a](const std::string &b) { return is_same_name(a, b); }; };
    for (const std::string &name : parameters.lowers)
        if (std::none_of(there.begin(), there.end(), same(name)) && !is_same_name(name, kProviderName)) {
            std::string known;
            for (const std::string &each : there)
                known += (known.empty() ? "" : ", ") + each;
            throw Error(FI_EINVAL, "FI_REGCACHE_LOWER: there is no core provider " + name + " here; there are " + known);
        }
    if (parameters.lowers.empty())
        return there;
    std::vector<std::string> wanted;
    for (const std::string &name : parameters.excludes_lowers ? there : parameters.lowers) {
        const bool is_listed = std::any_of(parameters.lowers.begin(), parameters.lowers.end(), same(name));
        if (is_listed != parameters.excludes_lowers && !is_same_name(name, kProviderName))
            wanted.push_back(name);
    }
    return wanted;
}

// Hints that name no wish stand for anything, where empty ones would refuse every mode that a provider needs.
InfoPtr no_wish()
{
    InfoPtr hints(fi_allocinfo());
    if (!hints)
        throw std::bad_alloc();
    hints->mode = hints->domain_attr->mode = ~std::uint64_t{0};
    hints->domain_attr->mr_mode = ~kOldModes;
    return hints;
}

// What the lower provider is asked instead. Empty when the hints mean another one.
InfoPtr hints_for(const std::string &lower, const fi_info *hints)
{
    InfoPtr asked = hints ? info_for_lower(*hints) : no_wish();
    if (hints) {
        if (hints->fabric_attr && hints->fabric_attr->name) {
            const LowerName name = lower_name(hints->fabric_attr->name);
            if (!is_same_name(name.provider, lower))
                return {};
        }
    }
    if (!asked->fabric_attr)
        asked->fabric_attr = static_cast<fi_fabric_attr *>(std::calloc(1, sizeof(fi_fabric_attr)));
    if (!asked->fabric_attr)
        throw std::bad_alloc();
    replace(asked->fabric_attr->prov_name, lower);
    asked->fabric_attr->prov_version = 0;
    if (asked->fabric_attr->name && asked->fabric_attr->name[0] == '\0') {
        std::free(asked->fabric_attr->name);
        asked->fabric_attr->name = nullptr;
    }
    return asked;
}

// Makes the lower provider's answers ours, in place: a copy would lose what a newer libfabric appended to the structures.
// Takes out those that can't be served, and gives the others. `hints` are the application's, or nullptr.
InfoPtr adopt(const std::string &lower, InfoPtr found, const fi_info *hints)
{
    // Without hints, or without those for domains, every mode is allowed.
    const int allowed = hints && hints->domain_attr ? hints->domain_attr->mr_mode : FI_MR_PROV_KEY;
    const bool allows_prov_key = (allowed & kOldModes) == 0 && (allowed & FI_MR_PROV_KEY) != 0;

    fi_info *first = nullptr, **end = &first;
    for (fi_info *each = found.release(), *next; each; each = next) {
        next = each->next;
        each->next = nullptr;
        if (each->domain_attr->threading != FI_THREAD_SAFE && each->domain_attr->threading != FI_THREAD_UNSPEC) {
            log(LogLevel::Info, "%s: not offered over %s, whose domains several threads can't use at once",
                each->domain_attr->name ? each->domain_attr->name : "", lower.c_str());
            fi_freeinfo(each);
            continue;
        }
        replace(each->fabric_attr->name, upper_fabric_name(lower, each->fabric_attr->name));
        std::free(each->fabric_attr->prov_name);
        each->fabric_attr->prov_name = nullptr; // libfabric fills it in
        each->fabric_attr->prov_version = 0;
        // Lower objects that are open may be named there; used by the application they would go round the cache.
        each->fabric_attr->fabric = hints && hints->fabric_attr ? hints->fabric_attr->fabric : nullptr;
        each->domain_attr->domain = hints && hints->domain_attr ? hints->domain_attr->domain : nullptr;
        if (allows_prov_key && (each->domain_attr->mr_mode & kOldModes) == 0)
            each->domain_attr->mr_mode |= FI_MR_PROV_KEY; // then keys are ours to choose, and regions can be shared
        *end = each;
        end = &each->next;
    }
    return InfoPtr(first);
}

InfoPtr ask_lower(const std::string &lower, std::uint32_t version, const char *node, const char *service,
                  std::uint64_t flags, const fi_info *hints)
{
    InfoPtr asked = hints_for(lower, hints);
    if (!asked)
        return {};
    if (asked->domain_attr)
        asked->domain_attr->threading = FI_THREAD_SAFE;
    InfoPtr found;
    if (ask(version, node, service, flags | kCoreOnly | kHidden, asked.get(), found) != 0)
        return {};
    return adopt(lower, std::move(found), hints);
}

} // namespace

int discover(fi_provider &provider, std::uint32_t version, const char *node, const char *service, std::uint64_t flags,
             const fi_info *hints, fi_info **infos) noexcept
{
    if (is_asking)
        return -FI_ENODATA;
    try {
        if (!is_asked_for(hints)) {
            bool is_always_offered = false;
            if (std::getenv("FI_REGCACHE_OFFER"))
                is_always_offered = read_parameters(provider).is_always_offered;
            if (!is_always_offered)
                return -FI_ENODATA;
        }
        const Parameters parameters = read_parameters(provider);
        fi_info *first = nullptr, **end = &first;
        for (const std::string &lower : wanted_providers(parameters, version)) {
            *end = ask_lower(lower, version, node, service, flags, hints).release();
            while (*end)
                end = &(*end)->next;
        }
        *infos = first;
        return first ? 0 : -FI_ENODATA;
    } catch (const Error &error) {
        warn_once(error.what());
        return -error.code();
    } catch (...) {
        return code_of_exception();
    }
}

} // namespace regcache
