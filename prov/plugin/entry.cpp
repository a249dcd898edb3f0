// SPDX-License-Identifier: BSD-2-Clause
// What libfabric sees when it loads the library: one function that gives the provider. Starts nothing.
#include "fid/domain.hpp"
#include "fid/fabric.hpp"
#include "ofi/op.hpp"
#include "ofi/provider_log.hpp"
#include "plugin/discovery.hpp"
#include "plugin/parameters.hpp"

#include <rdma/providers/fi_prov.h>

namespace regcache {
namespace {

int get_info(std::uint32_t version, const char *node, const char *service, std::uint64_t flags, const fi_info *hints,
             fi_info **infos);
int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context);
void clean_up();

fi_provider provider = {
    .version = FI_VERSION(0, 1),
    .fi_version = FI_VERSION(1, 17), // set to the running libfabric's, which would refuse an older one
    .context = {},
    .name = kProviderName,
    .getinfo = get_info,
    .fabric = open_fabric,
    .cleanup = clean_up,
};

int get_info(std::uint32_t version, const char *node, const char *service, std::uint64_t flags, const fi_info *hints,
             fi_info **infos)
{
    return discover(provider, version, node, service, flags, hints, infos);
}

int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context)
{
    if (!attr || !fabric)
        return -FI_EINVAL;
    try {
        *fabric = new Fabric(*attr, read_parameters(provider).settings, context);
        return 0;
    } catch (const Error &error) {
        warn_once(error.what());
        return -error.code();
    } catch (...) {
        return code_of_exception();
    }
}

// libfabric calls this at the end of the process and then unloads us; domains may be open still, and their threads run.
void clean_up()
{
    Domain::stop_all();
    log_through(nullptr);
}

} // namespace
} // namespace regcache

extern "C" __attribute__((visibility("default"))) fi_provider *fi_prov_ini()
{
    regcache::provider.fi_version = fi_version();
    regcache::log_through(&regcache::provider);
    regcache::define_parameters(regcache::provider);
    return &regcache::provider;
}
