// SPDX-License-Identifier: BSD-2-Clause
// What fi_getinfo finds of pin: two domains of one fabric, when pin is named and pages can be pinned here.
#include "fabric.hpp"
#include "provider.hpp"
#include "ring.hpp"

#include "domain.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace pin {

namespace {

constexpr std::uint64_t kRights = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kPrimary = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
constexpr std::uint64_t kSecondary =
    FI_MULTI_RECV | FI_RMA_EVENT | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV | FI_SOURCE | FI_SHARED_AV | FI_NAMED_RX_CTX;
constexpr int kTargetModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY; // these concern remote access only

constexpr struct {
    const char *name;
    int bit;
} kModes[] = {
    {"local", FI_MR_LOCAL},       {"raw", FI_MR_RAW},           {"virt_addr", FI_MR_VIRT_ADDR}, {"allocated", FI_MR_ALLOCATED},
    {"prov_key", FI_MR_PROV_KEY}, {"mmu_notify", FI_MR_MMU_NOTIFY}, {"rma_event", FI_MR_RMA_EVENT}, {"endpoint", FI_MR_ENDPOINT},
    {"hmem", FI_MR_HMEM},
};

// FI_PIN_MR_MODE: a number, or names with commas between; "none" is no bit.
int wanted_mr_mode()
{
    const char *text = text_parameter("mr_mode");
    if (!text)
        return FI_MR_LOCAL | kTargetModes;
    char *rest = nullptr;
    const long number = std::strtol(text, &rest, 0);
    if (rest != text && *rest == '\0')
        return static_cast<int>(number);
    int bits = 0;
    const std::string names = std::string(text) + ',';
    for (std::size_t at = 0; at < names.size();) {
        const std::size_t end = names.find(',', at);
        const std::string name = names.substr(at, end - at);
        at = end + 1;
        bool is_known = name.empty() || name == "none";
        for (const auto &mode : kModes)
            if (name == mode.name) {
                bits |= mode.bit;
                is_known = true;
            }
        if (!is_known)
            warn("mr_mode: %s isn't a name of a mode; ignored", name.c_str());
    }
    return bits;
}

// Later libfabrics append to these structures; they find zeros there. fi_freeinfo frees with free().
template <class T>
T *allocated()
{
    void *memory = std::calloc(1, sizeof(T) + 256);
    if (!memory)
        throw std::bad_alloc();
    return static_cast<T *>(memory);
}

char *copy_of(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        throw std::bad_alloc();
    return copy;
}

bool is_in_list(const char *list, const char *name)
{
    if (!list || *list == '^')
        return false;
    const std::string wanted = std::string(",") + name + ',';
    return (std::string(",") + list + ',').find(wanted) != std::string::npos;
}

bool is_named(const fi_info *hints)
{
    const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : nullptr;
    return name ? std::strstr(name, kName) != nullptr : is_in_list(std::getenv("FI_PROVIDER"), kName);
}

// The mode to report, or -1 when the hints don't allow what pin needs.
int agreed_mr_mode(std::uint32_t version, const fi_info *hints)
{
    int needed = wanted_mr_mode();
    const bool is_target = !hints || hints->caps == 0 || (hints->caps & (FI_RMA | FI_ATOMIC)) != 0;
    if (!is_target)
        needed &= ~kTargetModes;
    if (!hints)
        return needed;
    const int offered = hints->domain_attr ? hints->domain_attr->mr_mode : 0;
    const bool is_old = offered == FI_MR_BASIC || offered == FI_MR_SCALABLE || FI_VERSION_LT(version, FI_VERSION(1, 5));
    if (!is_old)
        return (needed & ~offered & ~((hints->mode & FI_LOCAL_MR) != 0 ? FI_MR_LOCAL : 0)) == 0 ? needed : -1;
    if ((needed & FI_MR_LOCAL) != 0 && (hints->mode & FI_LOCAL_MR) == 0 && FI_VERSION_LT(version, FI_VERSION(1, 5)))
        return -1;
    needed &= ~FI_MR_LOCAL;
    if (needed == kTargetModes && offered != FI_MR_SCALABLE)
        return FI_MR_BASIC;
    return needed == 0 && offered != FI_MR_BASIC ? FI_MR_SCALABLE : -1;
}

bool is_answer(const fi_info *hints, std::uint64_t caps)
{
    if (!hints)
        return true;
    if ((hints->caps & ~caps) != 0)
        return false;
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_ADDR_STR)
        return false;
    const fi_ep_type type = hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
    // Connected endpoints only by order: over them rxm would offer itself, before pin.
    if (type != FI_EP_UNSPEC && type != FI_EP_RDM && !(type == FI_EP_MSG && is_set_parameter("msg")))
        return false;
    if (hints->fabric_attr && hints->fabric_attr->name && std::strcmp(hints->fabric_attr->name, kName) != 0)
        return false;
    are_objects_own(hints); // counts what isn't, no more: the names decide
    return true;
}

using Info = std::unique_ptr<fi_info, void (*)(fi_info *)>;

Info make_info(const char *domain, const fi_info *hints, std::uint64_t caps, int mr_mode)
{
    Info info(allocated<fi_info>(), &fi_freeinfo);
    info->tx_attr = allocated<fi_tx_attr>();
    info->rx_attr = allocated<fi_rx_attr>();
    info->ep_attr = allocated<fi_ep_attr>();
    info->domain_attr = allocated<fi_domain_attr>();
    info->fabric_attr = allocated<fi_fabric_attr>();
    info->caps = caps;
    info->addr_format = FI_ADDR_STR;
    info->src_addr = copy_of(kAddress);
    info->src_addrlen = sizeof(kAddress);

    fi_tx_attr &tx = *info->tx_attr;
    tx.caps = caps & (kPrimary | FI_SEND | FI_READ | FI_WRITE);
    tx.op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
    tx.inject_size = 64;
    tx.size = 1024;
    tx.iov_limit = tx.rma_iov_limit = 4;

    fi_rx_attr &rx = *info->rx_attr;
    rx.caps = caps & (kPrimary | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | kSecondary);
    rx.op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;
    rx.size = 1024;
    rx.iov_limit = 4;

    fi_ep_attr &ep = *info->ep_attr;
    ep.type = hints && hints->ep_attr && hints->ep_attr->type == FI_EP_MSG ? FI_EP_MSG : FI_EP_RDM;
    ep.protocol = 0x80000001; // nobody else's
    ep.protocol_version = 1;
    ep.max_msg_size = std::size_t{1} << 40;
    ep.mem_tag_format = ~std::uint64_t{0} >> 1;
    ep.tx_ctx_cnt = ep.rx_ctx_cnt = 1;

    fi_domain_attr &attr = *info->domain_attr;
    attr.name = copy_of(domain);
    attr.threading = FI_THREAD_SAFE;
    attr.control_progress = attr.data_progress = FI_PROGRESS_AUTO;
    attr.resource_mgmt = FI_RM_ENABLED;
    attr.av_type = hints && hints->domain_attr && hints->domain_attr->av_type ? hints->domain_attr->av_type : FI_AV_MAP;
    attr.mr_mode = mr_mode;
    attr.mr_key_size = sizeof(std::uint64_t);
    attr.cq_data_size = sizeof(std::uint64_t);
    attr.cq_cnt = attr.ep_cnt = attr.cntr_cnt = 1024;
    attr.tx_ctx_cnt = attr.rx_ctx_cnt = attr.max_ep_stx_ctx = attr.max_ep_srx_ctx = 1024;
    attr.max_ep_tx_ctx = attr.max_ep_rx_ctx = 16;
    attr.mr_iov_limit = 4;
    attr.mr_cnt = size_parameter("mr_cnt", 65536);
    attr.caps = caps & (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV);

    info->fabric_attr->name = copy_of(kName);
    info->fabric_attr->prov_version = FI_VERSION(1, 0);
    return info;
}

} // namespace

int getinfo(std::uint32_t version, const char *, const char *, std::uint64_t, const fi_info *hints, fi_info **found)
{
    if (!is_named(hints))
        return -FI_ENODATA;
    try {
        std::string why;
        if (probe(why) != 0) {
            static std::atomic<bool> is_said{false};
            if (!is_said.exchange(true))
                warn("%s", why.c_str());
            return -FI_ENODATA;
        }
        const int mr_mode = agreed_mr_mode(version, hints);
        const bool has_device_memory = mr_mode >= 0 && (wanted_mr_mode() & FI_MR_HMEM) != 0;
        const std::uint64_t offered = kPrimary | kRights | kSecondary | (has_device_memory ? FI_HMEM : 0);
        if (mr_mode < 0 || !is_answer(hints, offered))
            return -FI_ENODATA;
        std::uint64_t caps = hints && hints->caps ? hints->caps : offered;
        if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0)
            caps |= FI_SEND | FI_RECV;
        if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) == 0)
            caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        const char *wanted = hints && hints->domain_attr ? hints->domain_attr->name : nullptr;
        Info list(nullptr, &fi_freeinfo);
        for (const char *domain : {"pin1", "pin0"}) {
            if (wanted && std::strcmp(wanted, domain) != 0)
                continue;
            Info info = make_info(domain, hints, caps, mr_mode);
            info->next = list.release();
            list = std::move(info);
        }
        if (!list)
            return -FI_ENODATA;
        *found = list.release();
        return 0;
    } catch (const std::bad_alloc &) {
        return -FI_ENOMEM;
    }
}

} // namespace pin
