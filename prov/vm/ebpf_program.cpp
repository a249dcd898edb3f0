// SPDX-License-Identifier: BSD-2-Clause
// Loads the program with libbpf, which is found when it is needed, and makes queues.
#include "vm/ebpf_program.hpp"

#include "sys/error.hpp"
#include "vm/ebpf/queue_layout.h"
#include "vm/ebpf/vm_events.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace regcache {
namespace {

// The functions of libbpf that are used here. The provider is loaded into every program that uses libfabric; libbpf isn't.
struct Libbpf {
#define REGCACHE_LIBBPF(X)                                                                                                 \
    X(libbpf_set_print)                                                                                                    \
    X(bpf_object__open_mem)                                                                                                \
    X(bpf_object__load)                                                                                                    \
    X(bpf_object__close)                                                                                                   \
    X(bpf_object__next_program)                                                                                            \
    X(bpf_object__find_program_by_name)                                                                                    \
    X(bpf_object__find_map_by_name)                                                                                        \
    X(bpf_program__name)                                                                                                   \
    X(bpf_program__set_autoload)                                                                                           \
    X(bpf_program__autoload)                                                                                               \
    X(bpf_program__attach)                                                                                                 \
    X(bpf_program__attach_iter)                                                                                            \
    X(bpf_link__fd)                                                                                                        \
    X(bpf_link__destroy)                                                                                                   \
    X(bpf_iter_create)                                                                                                     \
    X(bpf_map__fd)                                                                                                         \
    X(bpf_map_create)                                                                                                      \
    X(bpf_map_lookup_elem)                                                                                                 \
    X(bpf_map_update_elem)                                                                                                 \
    X(bpf_map_delete_elem)                                                                                                 \
    X(btf__load_vmlinux_btf)                                                                                               \
    X(btf__find_by_name_kind)                                                                                              \
    X(btf__free)
#define REGCACHE_DECLARE(function) decltype(&::function) function = nullptr;
    REGCACHE_LIBBPF(REGCACHE_DECLARE)
#undef REGCACHE_DECLARE

    Libbpf() : library(dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL))
    {
        if (!library)
            throw Error(ENOENT, "libbpf isn't there: install the package libbpf1");
#define REGCACHE_FIND(name)                                                                                                \
    name = reinterpret_cast<decltype(name)>(dlsym(library, #name));                                                        \
    if (!name)                                                                                                             \
        throw Error(ENOSYS, "libbpf is too old: it lacks " #name);
        REGCACHE_LIBBPF(REGCACHE_FIND)
#undef REGCACHE_FIND
#undef REGCACHE_LIBBPF
        libbpf_set_print(nullptr);
    }
    Libbpf(const Libbpf &) = delete;
    Libbpf &operator=(const Libbpf &) = delete;
    ~Libbpf() { dlclose(library); }

    void *library;
};

// Whether this process has CAP_PERFMON (38) and CAP_BPF (39), or CAP_SYS_ADMIN (21).
bool has_capabilities()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("CapEff:", 0) != 0)
            continue;
        const std::uint64_t effective = std::strtoull(line.c_str() + 7, nullptr, 16);
        return (effective >> 38 & 3) == 3 || (effective >> 21 & 1) != 0;
    }
    return false;
}

std::string refusal(int error)
{
    if (error != EPERM && error != EACCES)
        return std::strerror(error);
    return has_capabilities() ? "the kernel forbids it (lockdown or a security module)"
                              : "CAP_BPF and CAP_PERFMON are needed";
}

} // namespace

struct EbpfProgram::Loaded {
    Libbpf libbpf;
    bpf_object *object = nullptr;
    std::vector<bpf_link *> links;
    bpf_link *finder = nullptr;

    ~Loaded()
    {
        for (bpf_link *link : links)
            libbpf.bpf_link__destroy(link);
        if (finder)
            libbpf.bpf_link__destroy(finder);
        if (object)
            libbpf.bpf_object__close(object);
    }

    // Which of the program's parts fit this kernel.
    void choose_parts()
    {
        btf *const kernel = libbpf.btf__load_vmlinux_btf();
        if (!kernel)
            throw Error(ENOSYS, "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)");
        const auto has = [&](const char *name, unsigned kind) {
            return libbpf.btf__find_by_name_kind(kernel, name, kind) > 0;
        };
        const bool has_unmap = has("unmap_page_range", BTF_KIND_FUNC);
        const bool has_zap = !has_unmap && has("__zap_vma_range", BTF_KIND_FUNC);
        const bool has_huge = has("__unmap_hugepage_range", BTF_KIND_FUNC);
        const bool has_move = has("move_page_tables", BTF_KIND_FUNC);
        const bool has_control = has("pagetable_move_control", BTF_KIND_STRUCT);
        libbpf.btf__free(kernel);
        if (!has_unmap && !has_zap)
            throw Error(ENOSYS, "this kernel has none of the functions that take pages out of page tables by a known name");
        const auto wants = [&](const char *part, bool is_wanted) {
            libbpf.bpf_program__set_autoload(libbpf.bpf_object__find_program_by_name(object, part), is_wanted);
        };
        wants("tell_unmap_page_range", has_unmap);
        wants("tell_zap_vma_range", has_zap);
        wants("tell_unmap_huge", has_huge);
        wants("tell_move", has_move && !has_control);
        wants("tell_move_of_control", has_move && has_control);
    }

    void attach()
    {
        bpf_program *part = nullptr;
        while ((part = libbpf.bpf_object__next_program(object, part)) != nullptr) {
            if (!libbpf.bpf_program__autoload(part))
                continue;
            const bool is_finder = std::string_view(libbpf.bpf_program__name(part)) == "find_mm";
            bpf_link *const link =
                is_finder ? libbpf.bpf_program__attach_iter(part, nullptr) : libbpf.bpf_program__attach(part);
            if (!link)
                throw Error(errno, std::string("the event program can't be attached: ") + refusal(errno));
            if (is_finder)
                finder = link;
            else
                links.push_back(link);
        }
    }

    int map(const char *name) const noexcept
    {
        return libbpf.bpf_map__fd(libbpf.bpf_object__find_map_by_name(object, name));
    }

    std::uint64_t address_space_of(pid_t pid, uid_t uid)
    {
        const int questions = map("questions");
        const __u32 first = 0;
        regcache_question question{static_cast<__u32>(pid), uid, 0};
        libbpf.bpf_map_update_elem(questions, &first, &question, BPF_ANY);
        const Fd iterator(libbpf.bpf_iter_create(libbpf.bpf_link__fd(finder)));
        char nothing[64];
        while (iterator && ::read(iterator.number(), nothing, sizeof nothing) > 0) {
        }
        libbpf.bpf_map_lookup_elem(questions, &first, &question);
        if (question.mm == 0)
            throw Error(ESRCH, "no process " + std::to_string(pid) + " that its user owns alone");
        return question.mm;
    }
};

EbpfProgram::EbpfProgram()
{
    // Before anything is loaded: most processes may not.
    if (!has_capabilities())
        throw Error(EPERM, refusal(EPERM));
    loaded_ = std::make_unique<Loaded>();
    std::size_t bytes = 0;
    const void *const program = vm_events__elf_bytes(&bytes);
    const Libbpf &libbpf = loaded_->libbpf;
    loaded_->object = libbpf.bpf_object__open_mem(program, bytes, nullptr);
    if (!loaded_->object)
        throw Error(errno, std::string("the event program can't be opened: ") + std::strerror(errno));
    loaded_->choose_parts();
    if (const int error = libbpf.bpf_object__load(loaded_->object); error != 0)
        throw Error(-error, "the event program can't be loaded: " + refusal(-error));
    loaded_->attach();
}

EbpfProgram::~EbpfProgram() = default;

EbpfProgram::Queue EbpfProgram::make_queue(pid_t pid, uid_t uid)
{
    const Libbpf &libbpf = loaded_->libbpf;
    bpf_map_create_opts options{};
    options.sz = sizeof options;
    options.map_flags = BPF_F_MMAPABLE;
    Queue queue;
    queue.map = Fd(libbpf.bpf_map_create(BPF_MAP_TYPE_ARRAY, "regcache_queue", sizeof(__u32), sizeof(regcache_queue), 1, &options));
    if (!queue.map)
        throw Error(errno, "no memory for an event queue: " + refusal(errno));
    queue.address_space = loaded_->address_space_of(pid, uid);
    const int map = queue.map.number();
    if (libbpf.bpf_map_update_elem(loaded_->map("queues"), &queue.address_space, &map, BPF_ANY) != 0)
        throw Error(errno, std::string("no more event queues: ") + std::strerror(errno));
    return queue;
}

void EbpfProgram::drop_queue(std::uint64_t address_space) noexcept
{
    loaded_->libbpf.bpf_map_delete_elem(loaded_->map("queues"), &address_space);
}

std::vector<int> EbpfProgram::links() const
{
    std::vector<int> numbers;
    for (const bpf_link *link : loaded_->links)
        numbers.push_back(loaded_->libbpf.bpf_link__fd(link));
    return numbers;
}

} // namespace regcache
