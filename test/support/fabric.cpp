// SPDX-License-Identifier: BSD-2-Clause
// A provider's objects as an application opens them (fabric.hpp).
#include "support/fabric.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace regcache::test {

namespace {

void check(int error, const std::string &call)
{
    if (error)
        throw std::runtime_error(call + ": " + fi_strerror(-error));
}

char *copy_or_null(const std::string &text) { return text.empty() ? nullptr : strdup(text.c_str()); }

// regcache's fabric is named "lower:fabric of the lower".
bool is_above(const fi_info *info, const std::string &lower)
{
    return lower.empty() || std::strncmp(info->fabric_attr->name, (lower + ':').c_str(), lower.size() + 1) == 0;
}

} // namespace

Info find_info(const Wish &wish)
{
    if (!wish.lower.empty())
        setenv("FI_REGCACHE_LOWER", wish.lower.c_str(), 1);
    Info hints(fi_allocinfo());
    if (!hints)
        throw std::bad_alloc();
    hints->caps = wish.caps;
    hints->mode = wish.mode;
    hints->ep_attr->type = wish.type;
    hints->domain_attr->mr_mode = wish.mr_mode;
    hints->domain_attr->name = copy_or_null(wish.domain);
    hints->fabric_attr->prov_name = copy_or_null(wish.provider);
    fi_info *list = nullptr;
    if (fi_getinfo(wish.version, nullptr, nullptr, 0, hints.get(), &list) != 0)
        return nullptr;
    const Info found(list);
    for (const fi_info *info = list; info; info = info->next)
        if (is_above(info, wish.lower) && (wish.provider.empty() || wish.provider == info->fabric_attr->prov_name))
            return Info(fi_dupinfo(info));
    return nullptr;
}

Card::Card(const Wish &wish) : info_(find_info(wish))
{
    const std::string name = wish.lower.empty() ? wish.provider : wish.provider + " over " + wish.lower;
    if (!info_)
        throw std::runtime_error("fi_getinfo finds no " + name + " as wished");
    check(fi_fabric(info_->fabric_attr, fabric_.out(), nullptr), "fi_fabric of " + name);
    check(fi_domain(fabric_.get(), info_.get(), domain_.out(), nullptr), "fi_domain of " + name);
}

Region Card::reg(const void *start, std::size_t len, std::uint64_t access, int *error, std::uint64_t requested_key)
{
    Region region;
    const int answer = fi_mr_reg(domain(), start, len, access, 0, requested_key, 0, region.out(), nullptr);
    if (error)
        *error = answer;
    else if (answer)
        std::fprintf(stderr, "fi_mr_reg: %s\n", fi_strerror(-answer));
    return region;
}

Region Card::regattr(const fi_mr_attr &attr, std::uint64_t flags, int *error)
{
    Region region;
    const int answer = fi_mr_regattr(domain(), &attr, flags, region.out());
    if (error)
        *error = answer;
    else if (answer)
        std::fprintf(stderr, "fi_mr_regattr: %s\n", fi_strerror(-answer));
    return region;
}

int Card::close() noexcept
{
    const int error = domain_.close();
    return error ? error : fabric_.close();
}

} // namespace regcache::test
