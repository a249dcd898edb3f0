// SPDX-License-Identifier: BSD-2-Clause
// The calls of pin.h.
#include "objects.hpp"
#include "ops.hpp"
#include "provider.hpp"
#include "regions.hpp"
#include "script.hpp"

#include <cerrno>
#include <cstdio>
#include <string>

namespace pin {

namespace {

int unusable(char *why, std::size_t why_size)
{
    return guarded<int>([&] {
        std::string text;
        const int error = probe(text);
        if (why && why_size != 0)
            std::snprintf(why, why_size, "%s", text.c_str());
        return error;
    });
}

ssize_t copied(Direction direction, ssize_t result)
{
    if (result >= 0)
        regions().count_copy(direction);
    return result;
}

ssize_t copy_by_desc(Direction direction, Rights rights, void *desc, const void *address, void *buffer, std::size_t len)
{
    return guarded<ssize_t>([&]() -> ssize_t {
        const auto registration = regions().find(desc);
        if (!registration)
            return -EINVAL;
        return copied(direction, registration->copy(direction, rights, address, buffer, len));
    });
}

ssize_t copy_by_key(Direction direction, std::uint64_t key, std::uint64_t remote_address, void *buffer, std::size_t len)
{
    return guarded<ssize_t>([&]() -> ssize_t {
        std::shared_ptr<Registration> registration;
        if (const int error = regions().find_key(key, registration))
            return error;
        const void *address = registration->local_address(remote_address);
        if (!address)
            return -EFAULT;
        return copied(direction, registration->copy(direction, Rights::Remote, address, buffer, len));
    });
}

ssize_t read(void *desc, const void *address, void *buffer, std::size_t len)
{
    return copy_by_desc(Direction::Out, Rights::Local, desc, address, buffer, len);
}

ssize_t write(void *desc, const void *address, const void *buffer, std::size_t len)
{
    return copy_by_desc(Direction::In, Rights::Local, desc, address, const_cast<void *>(buffer), len);
}

ssize_t peek(void *desc, const void *address, void *buffer, std::size_t len)
{
    return copy_by_desc(Direction::Out, Rights::Any, desc, address, buffer, len);
}

ssize_t remote_read(std::uint64_t key, std::uint64_t remote_address, void *buffer, std::size_t len)
{
    return copy_by_key(Direction::Out, key, remote_address, buffer, len);
}

ssize_t remote_write(std::uint64_t key, std::uint64_t remote_address, const void *buffer, std::size_t len)
{
    return copy_by_key(Direction::In, key, remote_address, const_cast<void *>(buffer), len);
}

void counters(pin_counters *now)
{
    *now = {};
    regions().fill(*now);
    now->objects = objects().live() - now->live;
    const Misuse &misuse = objects().misuse();
    now->foreign_fids = misuse.foreign_fids;
    now->foreign_descs = misuse.foreign_descs;
    now->double_closes = misuse.double_closes;
    now->calls_after_close = misuse.calls_after_close;
    now->calls_in_child = misuse.calls_in_child;
}

int look(void *desc, pin_region *region) { return regions().look(desc, *region); }
int look_key(std::uint64_t key, pin_region *region) { return regions().look_key(key, *region); }

int each(int (*f)(void *argument, const pin_region *region), void *argument)
{
    return guarded<int>([&] {
        for (const pin_region &region : regions().all())
            if (const int answer = f(argument, &region))
                return answer;
        return 0;
    });
}

void reset()
{
    script().reset();
    regions().reset_counters();
    objects().forget_misuse();
}

void fail_register(const pin_rule *rule) { script().fail_register(rule); }
void fail_deregister(const pin_rule *rule) { script().fail_deregister(rule); }
void limit(std::uint64_t max_live, std::uint64_t max_bytes) { script().limit(max_live, max_bytes); }
void keys(pin_keys which) { script().keys(which); }
void narrow_access(std::uint64_t access) { script().narrow_access(access); }
void demand_write(int is_demanded) { script().demand_write(is_demanded != 0); }
void set_hook(pin_hook hook, void *argument) { script().set_hook(hook, argument); }
std::uint64_t newest_foreign_class() { return objects().misuse().newest_foreign_class; }

} // namespace

const pin_ops kPinOps = {
    .size = sizeof(pin_ops),
    .unusable = &unusable,
    .read = &read,
    .write = &write,
    .peek = &peek,
    .remote_read = &remote_read,
    .remote_write = &remote_write,
    .counters = &counters,
    .look = &look,
    .look_key = &look_key,
    .each = &each,
    .reset = &reset,
    .fail_register = &fail_register,
    .fail_deregister = &fail_deregister,
    .limit = &limit,
    .keys = &keys,
    .narrow_access = &narrow_access,
    .demand_write = &demand_write,
    .hook = &set_hook,
    .newest_foreign_class = &newest_foreign_class,
};

} // namespace pin
