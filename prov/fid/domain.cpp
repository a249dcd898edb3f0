// SPDX-License-Identifier: BSD-2-Clause
// Opens and closes a domain, and forwards what is asked of it with the lower objects in the place of ours.
#include "fid/domain.hpp"

#include "fid/limits.hpp"
#include "fid/statistics_line.hpp"
#include "ofi/lower_cache.hpp"
#include "ofi/op.hpp"
#include "sys/log.hpp"
#include "vm/choice.hpp"

#include <rdma/fi_eq.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace regcache {
namespace {

constinit fi_ops domain_fid_ops = {
    .size = sizeof(fi_ops),
    .close = op<&Domain::close>,
    .bind = op<&Domain::bind>,
    .control = op<&Domain::control>,
    .ops_open = enosys, // tables of the lower provider would take our objects for its own
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = op<&Domain::open_av>,
    .cq_open = op<&Domain::open_cq>,
    .endpoint = op<&Domain::open_endpoint>,
    .scalable_ep = op<&Domain::open_scalable_ep>,
    .cntr_open = op<&Domain::open_cntr>,
    .poll_open = op<&Domain::open_poll>,
    .stx_ctx = op<&Domain::open_stx>,
    .srx_ctx = op<&Domain::open_srx>,
    .query_atomic = op<&Domain::query_atomic>,
    .query_collective = op<&Domain::query_collective>,
    .endpoint2 = op<&Domain::open_endpoint2>,
};

constinit fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = op<&Domain::reg>,
    .regv = op<&Domain::regv>,
    .regattr = op<&Domain::regattr>,
};

std::mutex open_domains_mutex;
Domain *open_domains = nullptr;

constexpr int kOldModes = FI_MR_BASIC | FI_MR_SCALABLE;

// A region must be bound and enabled before it is used, or refreshed when its memory changes.
constexpr int kModesOfOneHandle = FI_MR_ENDPOINT | FI_MR_RMA_EVENT | FI_MR_COLLECTIVE | FI_MR_MMU_NOTIFY;

bool has_mode(int mr_mode, int bit) noexcept
{
    if ((mr_mode & kOldModes) != 0)
        return (mr_mode & FI_MR_BASIC) != 0 && (bit & (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)) != 0;
    return (mr_mode & bit) != 0;
}

// Who chooses keys. The application was told FI_MR_PROV_KEY perhaps by us only: the lower provider is asked again.
Registrar::Keys who_chooses_keys(const Fabric &fabric, const fi_info &info)
{
    if (!has_mode(info.domain_attr->mr_mode, FI_MR_PROV_KEY))
        return Registrar::Keys::OursBesideApp;
    if ((info.domain_attr->mr_mode & kOldModes) != 0)
        return Registrar::Keys::OfLower;
    InfoPtr hints(fi_allocinfo());
    if (!hints)
        throw std::bad_alloc();
    replace(hints->fabric_attr->prov_name, fabric.lower_name().provider);
    if (info.domain_attr->name)
        replace(hints->domain_attr->name, info.domain_attr->name);
    hints->domain_attr->mr_mode = info.domain_attr->mr_mode;
    hints->mode = info.mode;
    hints->caps = info.caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
    hints->ep_attr->type = info.ep_attr ? info.ep_attr->type : FI_EP_UNSPEC;
    fi_info *found = nullptr;
    constexpr std::uint64_t kHiddenCore = (std::uint64_t{1} << 60) | (std::uint64_t{1} << 59);
    if (fi_getinfo(fabric.api_version, nullptr, nullptr, kHiddenCore, hints.get(), &found) != 0)
        return Registrar::Keys::OfLower;
    const InfoPtr lower(found);
    return (lower->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0 ? Registrar::Keys::OfLower : Registrar::Keys::Ours;
}

// Makes sure, as far as can be, that what is deregistered below is gone: the flags for registrations below. Before the
// lower domain is opened.
std::uint64_t flags_below(const std::string &provider, const std::string &domain) noexcept
{
    if (!pins(provider) || keep_lower_caches_off() == LowerCache::Off)
        return 0;
    // A flag of libfabric's own layers, the same from 1.17 to 2.6: past the provider's cache.
    constexpr std::uint64_t kPastCache = std::uint64_t{1} << 60;
    if (provider == "verbs" || provider == "cxi")
        return kPastCache;
    log(LogLevel::Warning, "%s: %s may cache registrations itself, and another library's memory monitor keeps it from being "
                           "told not to: set FI_MR_CACHE_MONITOR=disabled",
        domain.c_str(), provider.c_str());
    return 0;
}

LowerDomain open_lower(const Fabric &fabric, const fi_info &info, int mr_mode, std::uint64_t flags)
{
    const InfoPtr below = info_for_lower(info);
    below->domain_attr->mr_mode = mr_mode;
    // Registrations end on a thread of ours too.
    below->domain_attr->threading = FI_THREAD_SAFE;
    fid_domain *lower = nullptr;
    const int error = flags != 0 ? fi_domain2(fabric.lower(), below.get(), &lower, flags, nullptr)
                                 : fi_domain(fabric.lower(), below.get(), &lower, nullptr);
    if (error != 0)
        throw Error(-error, "the lower provider can't open the domain");
    return LowerDomain(lower);
}

} // namespace

Domain::Domain(Fabric &fabric, const fi_info &info, std::uint64_t flags, void *context)
    : fid_domain{}, fabric_(fabric),
      name_(fabric.lower_name().provider + ":" + (info.domain_attr->name ? info.domain_attr->name : "")),
      keys_(who_chooses_keys(fabric, info)), counts_from_start_(!has_mode(info.domain_attr->mr_mode, FI_MR_VIRT_ADDR)),
      may_cache_any_((info.domain_attr->mr_mode & kOldModes) != 0 ||
                     (info.domain_attr->mr_mode & kModesOfOneHandle) == 0),
      has_devices_((info.caps & FI_HMEM) != 0), generation_(fork_generation()),
      flags_below_(flags_below(fabric.lower_name().provider, name_)),
      lower_(open_lower(fabric, info, lower_mr_mode(info.domain_attr->mr_mode), flags)),
      registrar_(lower_.get(), keys_, info.domain_attr->mr_key_size, flags_below_)
{
    fid.fclass = FI_CLASS_DOMAIN;
    fid.context = context;
    fid.ops = &domain_fid_ops;
    ops = &domain_ops;
    mr = &mr_ops;

    const Settings &settings = fabric.settings();
    std::shared_ptr<Source> source;
    try {
        source = open_source(settings.source, {settings.caches_shared});
    } catch (const Error &error) {
        log(LogLevel::Warning, "%s: %s", name_.c_str(), error.what());
        throw;
    }
    const CacheOptions options = cache_options(info);
    cache_ = std::make_unique<Cache>(options, source, registrar_);
    log(LogLevel::Info, "%s: source %s, at most %zu registrations and %zu bytes, shared memory %s, remote keys %s",
        name_.c_str(), source->name(), options.limits.max_count, options.limits.max_bytes,
        settings.caches_shared ? "cached" : "not cached unless the source sees all of it",
        settings.keeps_remote_keys ? "kept" : "end with their region");
    fabric_.count_domain(1);
    const std::lock_guard guard(open_domains_mutex);
    next_ = open_domains;
    if (next_)
        next_->previous_ = this;
    open_domains = this;
}

Domain::~Domain()
{
    const std::lock_guard guard(open_domains_mutex);
    if (previous_)
        previous_->next_ = next_;
    else if (open_domains == this)
        open_domains = next_;
    if (next_)
        next_->previous_ = previous_;
}

CacheOptions Domain::cache_options(const fi_info &info) const
{
    const Settings &settings = fabric_.settings();
    CacheOptions options;
    options.limits = default_limits(fabric_.lower_name().provider, info.domain_attr->mr_cnt);
    options.limits.max_count = settings.max_count.value_or(options.limits.max_count);
    options.limits.max_bytes = settings.max_bytes.value_or(options.limits.max_bytes);
    options.ends_with_use = settings.keeps_remote_keys ? 0 : FI_REMOTE_READ | FI_REMOTE_WRITE;
    options.name = name_.c_str();
    return options;
}

Domain *Domain::of(fid_domain *domain) noexcept
{
    return domain && domain->fid.ops == &domain_fid_ops ? static_cast<Domain *>(domain) : nullptr;
}

int Domain::close()
{
    if (generation_ != fork_generation()) {
        lower_.release(); // the parent's
    } else {
        if (handles_.load_ordered() != 0)
            return -FI_EBUSY;
        cache_->flush();
        // Refused while endpoints or queues are open: then we go on as we are.
        if (const int error = fi_close(&lower_->fid); error != 0)
            return error;
        lower_.release();
        print_statistics();
    }
    fabric_.count_domain(-1);
    delete this;
    return 0;
}

void Domain::print_statistics() const noexcept
{
    if (fabric_.settings().prints_statistics)
        print_statistics_line(name_, cache_->source().name(), cache_->statistics());
}

void Domain::stop_all() noexcept
{
    const std::lock_guard guard(open_domains_mutex);
    if (!open_domains)
        take_back_monitor();
    for (const Domain *each = open_domains; each; each = each->next_) {
        if (each->generation_ == fork_generation()) {
            each->print_statistics();
            each->cache_->stop();
        }
    }
}

// FI_REG_MR makes registering asynchronous, with an event that names the lower object: not with a cache in between.
int Domain::bind(struct fid *object, std::uint64_t flags) noexcept
{
    return (flags & FI_REG_MR) != 0 ? -FI_EOPNOTSUPP : fi_domain_bind(lower_.get(), object, flags);
}

int Domain::control(int command, void *argument) noexcept
{
    return lower_->fid.ops->control(&lower_->fid, command, argument);
}

int Domain::open_av(fi_av_attr *attr, fid_av **av, void *context) noexcept
{
    return fi_av_open(lower_.get(), attr, av, context);
}

int Domain::open_cq(fi_cq_attr *attr, fid_cq **cq, void *context) noexcept
{
    return fi_cq_open(lower_.get(), attr, cq, context);
}

int Domain::open_endpoint(fi_info *info, fid_ep **endpoint, void *context)
{
    return info ? fi_endpoint(lower_.get(), info_for_lower(*info).get(), endpoint, context) : -FI_EINVAL;
}

int Domain::open_endpoint2(fi_info *info, fid_ep **endpoint, std::uint64_t flags, void *context)
{
    return info ? fi_endpoint2(lower_.get(), info_for_lower(*info).get(), endpoint, flags, context) : -FI_EINVAL;
}

int Domain::open_scalable_ep(fi_info *info, fid_ep **endpoint, void *context)
{
    return info ? fi_scalable_ep(lower_.get(), info_for_lower(*info).get(), endpoint, context) : -FI_EINVAL;
}

int Domain::open_cntr(fi_cntr_attr *attr, fid_cntr **cntr, void *context) noexcept
{
    return fi_cntr_open(lower_.get(), attr, cntr, context);
}

int Domain::open_poll(fi_poll_attr *attr, fid_poll **poll) noexcept
{
    return fi_poll_open(lower_.get(), attr, poll);
}

int Domain::open_stx(fi_tx_attr *attr, fid_stx **stx, void *context) noexcept
{
    return fi_stx_context(lower_.get(), attr, stx, context);
}

int Domain::open_srx(fi_rx_attr *attr, fid_ep **endpoint, void *context) noexcept
{
    return fi_srx_context(lower_.get(), attr, endpoint, context);
}

int Domain::query_atomic(fi_datatype datatype, fi_op operation, fi_atomic_attr *attr, std::uint64_t flags) noexcept
{
    return fi_query_atomic(lower_.get(), datatype, operation, attr, flags);
}

int Domain::query_collective(fi_collective_op operation, fi_collective_attr *attr, std::uint64_t flags) noexcept
{
    return fi_query_collective(lower_.get(), operation, attr, flags);
}

} // namespace regcache
