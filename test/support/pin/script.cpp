// SPDX-License-Identifier: BSD-2-Clause
// Ordered misbehaviour (script.hpp).
#include "script.hpp"

#include "objects.hpp"
#include "provider.hpp"

#include <cstdlib>
#include <cstring>

#include <rdma/fi_errno.h>

namespace pin {

namespace {

constexpr struct {
    const char *name;
    int error;
} kErrors[] = {
    {"ENOMEM", FI_ENOMEM}, {"EAGAIN", FI_EAGAIN}, {"EINVAL", FI_EINVAL}, {"EFAULT", FI_EFAULT}, {"EBUSY", FI_EBUSY},
    {"EIO", FI_EIO},       {"ENOSPC", FI_ENOSPC}, {"EACCES", FI_EACCES}, {"ENOSYS", FI_ENOSYS},
};

// "first[/every][:error]", such as "3/5:EAGAIN"; the error is ENOMEM when none is named.
bool read_rule(const char *text, pin_rule &rule)
{
    pin_rule read{0, 0, FI_ENOMEM};
    char *rest = nullptr;
    read.first = std::strtoull(text, &rest, 10);
    if (rest == text)
        return false;
    if (*rest == '/')
        read.every = std::strtoull(rest + 1, &rest, 10);
    if (*rest == ':') {
        const char *name = rest + 1;
        read.error = 0;
        for (const auto &known : kErrors)
            if (std::strcmp(known.name, name) == 0)
                read.error = known.error;
        if (read.error == 0)
            read.error = std::atoi(name);
        if (read.error <= 0)
            return false;
        rest += std::strlen(rest);
    }
    if (*rest != '\0')
        return false;
    rule = read;
    return true;
}

void read_rule_of(const char *parameter, pin_rule &rule)
{
    const char *text = text_parameter(parameter);
    if (text && !read_rule(text, rule))
        warn("%s=%s isn't first[/every][:error], such as 3/5:EAGAIN; ignored", parameter, text);
}

} // namespace

Environment read_environment()
{
    Environment found;
    read_rule_of("fail_register", found.fail_register);
    read_rule_of("fail_deregister", found.fail_deregister);
    found.max_count = size_parameter("max_count", 0);
    found.max_size = size_parameter("max_size", 0);
    const char *keys = text_parameter("keys");
    if (keys && std::strcmp(keys, "lowest") == 0)
        found.keys = PIN_KEYS_LOWEST;
    else if (keys && std::strcmp(keys, "fresh") != 0)
        warn("keys=%s is neither fresh nor lowest; ignored", keys);
    found.is_write_demanded = is_set_parameter("demand_write");
    return found;
}

Script &script()
{
    return immortal<Script>();
}

void Script::reset()
{
    const Environment said = read_environment();
    const std::lock_guard lock(mutex_);
    register_ = {said.fail_register, 0};
    deregister_ = {said.fail_deregister, 0};
    max_live_ = said.max_count;
    max_bytes_ = said.max_size;
    keys_ = said.keys;
    access_ = UINT64_MAX;
    is_write_demanded_ = said.is_write_demanded;
    hook_ = nullptr;
    argument_ = nullptr;
}

int Script::Count::next()
{
    ++calls;
    if (rule.first == 0 || calls < rule.first)
        return 0;
    const std::uint64_t after = calls - rule.first;
    const bool is_hit = rule.every == 0 ? after == 0 : after % rule.every == 0;
    return is_hit ? -rule.error : 0;
}

void Script::fail_register(const pin_rule *rule)
{
    const std::lock_guard lock(mutex_);
    register_ = {rule ? *rule : pin_rule{0, 0, 0}, 0};
}

void Script::fail_deregister(const pin_rule *rule)
{
    const std::lock_guard lock(mutex_);
    deregister_ = {rule ? *rule : pin_rule{0, 0, 0}, 0};
}

void Script::limit(std::uint64_t max_live, std::uint64_t max_bytes)
{
    const std::lock_guard lock(mutex_);
    max_live_ = max_live;
    max_bytes_ = max_bytes;
}

void Script::keys(pin_keys which)
{
    const std::lock_guard lock(mutex_);
    keys_ = which;
}

void Script::narrow_access(std::uint64_t access)
{
    const std::lock_guard lock(mutex_);
    access_ = access;
}

void Script::demand_write(bool is_demanded)
{
    const std::lock_guard lock(mutex_);
    is_write_demanded_ = is_demanded;
}

void Script::set_hook(pin_hook hook, void *argument)
{
    const std::lock_guard lock(mutex_);
    hook_ = hook;
    argument_ = argument;
}

int Script::next_register()
{
    const std::lock_guard lock(mutex_);
    return register_.next();
}

int Script::next_deregister()
{
    const std::lock_guard lock(mutex_);
    return deregister_.next();
}

std::pair<std::uint64_t, std::uint64_t> Script::limits()
{
    const std::lock_guard lock(mutex_);
    return {max_live_, max_bytes_};
}

pin_keys Script::keys()
{
    const std::lock_guard lock(mutex_);
    return keys_;
}

std::uint64_t Script::allowed_access()
{
    const std::lock_guard lock(mutex_);
    return access_;
}

bool Script::is_write_demanded()
{
    const std::lock_guard lock(mutex_);
    return is_write_demanded_;
}

int Script::call_hook(pin_moment moment, const void *start, std::size_t len)
{
    pin_hook hook;
    void *argument;
    {
        const std::lock_guard lock(mutex_);
        hook = hook_;
        argument = argument_;
    }
    return hook ? -hook(argument, moment, start, len) : 0;
}

} // namespace pin
