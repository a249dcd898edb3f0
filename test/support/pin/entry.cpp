// SPDX-License-Identifier: BSD-2-Clause
// Where libfabric comes in (fi_prov_ini) and goes out, and what a fork does to pin.
#include "objects.hpp"
#include "provider.hpp"
#include "regions.hpp"
#include "script.hpp"

#include <pthread.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace pin {

namespace {

unsigned generation = 0;
bool are_statistics_wanted = false;

// The locks are taken over a fork, so that the child, where only one thread is left, finds them free.
void before_fork()
{
    script().mutex().lock();
    regions().mutex().lock();
    objects().mutex().lock();
}

void after_fork_in_parent()
{
    objects().mutex().unlock();
    regions().mutex().unlock();
    script().mutex().unlock();
}

void after_fork_in_child()
{
    ++generation;
    after_fork_in_parent();
}

void cleanup()
{
    if (are_statistics_wanted) {
        pin_counters now{};
        kPinOps.counters(&now);
        std::fprintf(stderr,
                     "pin: {\"asked\":%" PRIu64 ",\"registered\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"deregistered\":%" PRIu64
                     ",\"live\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"most_live\":%" PRIu64 ",\"most_bytes\":%" PRIu64
                     ",\"foreign_fids\":%" PRIu64 ",\"foreign_descs\":%" PRIu64 ",\"double_closes\":%" PRIu64
                     ",\"objects\":%" PRIu64 "}\n",
                     now.asked, now.registered, now.refused, now.deregistered, now.live, now.bytes, now.most_live,
                     now.most_bytes, now.foreign_fids, now.foreign_descs, now.double_closes, now.objects);
    }
    objects().bury();
    regions().bury();
}

} // namespace

void warn(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "pin: %s\n", line);
}

unsigned fork_generation() noexcept { return generation; }

fi_provider provider = {
    .version = FI_VERSION(1, 0),
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .context = {},
    .name = kName,
    .getinfo = &getinfo,
    .fabric = &open_fabric,
    .cleanup = &cleanup,
};

const char *text_parameter(const char *parameter)
{
    char *value = nullptr;
    return fi_param_get_str(&provider, parameter, &value) == 0 ? value : nullptr;
}

std::uint64_t size_parameter(const char *parameter, std::uint64_t otherwise)
{
    std::size_t value = 0;
    return fi_param_get_size_t(&provider, parameter, &value) == 0 ? value : otherwise;
}

bool is_set_parameter(const char *parameter)
{
    int value = 0;
    return fi_param_get_bool(&provider, parameter, &value) == 0 && value != 0;
}

} // namespace pin

extern "C" {

FI_EXT_INI
{
    using pin::provider;
    static bool is_begun = false;
    if (is_begun)
        return &provider;
    is_begun = true;
    provider.fi_version = fi_version(); // else a later libfabric than the one of the headers turns pin away
    fi_param_define(&provider, "mr_mode", FI_PARAM_STRING,
                    "registration modes: a number or names such as local,virt_addr,allocated,prov_key (default), endpoint, none");
    fi_param_define(&provider, "mr_cnt", FI_PARAM_SIZE_T, "fi_domain_attr.mr_cnt to report (default 65536)");
    fi_param_define(&provider, "msg", FI_PARAM_BOOL, "offer FI_EP_MSG to who asks for it (rxm does); default no");
    fi_param_define(&provider, "fail_register", FI_PARAM_STRING, "first[/every][:error]: registrations to refuse");
    fi_param_define(&provider, "fail_deregister", FI_PARAM_STRING, "first[/every][:error]: deregistrations to refuse");
    fi_param_define(&provider, "max_count", FI_PARAM_SIZE_T, "registrations allowed at a time (default: no limit)");
    fi_param_define(&provider, "max_size", FI_PARAM_SIZE_T, "bytes allowed to be registered at a time (default: no limit)");
    fi_param_define(&provider, "keys", FI_PARAM_STRING, "fresh (default) or lowest: a closed key is given out at once");
    fi_param_define(&provider, "demand_write", FI_PARAM_BOOL, "refuse read-only memory, whatever rights are asked");
    fi_param_define(&provider, "stats", FI_PARAM_BOOL, "print the counters when libfabric unloads pin");
    pin::are_statistics_wanted = pin::is_set_parameter("stats"); // at the end parameters can't be read any more
    pthread_atfork(&pin::before_fork, &pin::after_fork_in_parent, &pin::after_fork_in_child);
    return &provider;
}

__attribute__((visibility("default"))) const pin_ops *pin_get_ops(void) { return &pin::kPinOps; }

} // extern "C"
