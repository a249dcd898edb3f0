// SPDX-License-Identifier: BSD-2-Clause
// Opens the process's one source, and says once why it isn't the best one.
#include "vm/choice.hpp"

#include "sys/atomic.hpp"
#include "sys/error.hpp"
#include "sys/fork.hpp"
#include "sys/log.hpp"
#include "vm/sources.hpp"

#include <cerrno>
#include <mutex>

namespace regcache {
namespace {

// What one process has open. A forked child starts anew: the parent's source is dead there, and a lock of the parent's may
// be held for ever.
struct Open {
    unsigned generation = 0;
    std::mutex mutex; // held while a source starts: nothing that a source's threads wait for
    std::weak_ptr<Source> source;
    SourceOptions options;
    bool has_told_why = false;
};

Open at_load;
Atomic<Open *> open_here{&at_load}; // [open] replaced only in a forked child
std::mutex replacing;

Open &this_process()
{
    if (Open *open = open_here.load_acquire(); open->generation == fork_generation()) // [open]
        return *open;
    const std::lock_guard guard(replacing);
    Open *open = open_here.load_acquire();
    if (open->generation != fork_generation()) {
        open = new Open; // what the parent had is left alone
        open->generation = fork_generation();
        open_here.store_release(open); // [open]
    }
    return *open;
}

std::shared_ptr<Source> start_best(const SourceOptions &options, bool &has_told_why)
{
    std::string why;
    for (const SourceKind &kind : source_kinds()) {
        try {
            auto source = kind.start(options);
            if (!why.empty() && !has_told_why) {
                const bool caches_nothing = std::string(kind.name) == "none";
                log(caches_nothing ? LogLevel::Warning : LogLevel::Info, "the event source %s is used%s: %s", kind.name,
                    caches_nothing ? ", so nothing is cached" : "", why.c_str());
                has_told_why = true;
            }
            return source;
        } catch (const Error &error) {
            why += (why.empty() ? "" : "; ") + std::string(kind.name) + ": " + error.what();
        }
    }
    throw Error(ENOSYS, "no event source starts: " + why);
}

std::shared_ptr<Source> start_named(const std::string &name, const SourceOptions &options)
{
    std::string known = "auto";
    for (const SourceKind &kind : source_kinds()) {
        if (name == kind.name) {
            try {
                return kind.start(options);
            } catch (const Error &error) {
                throw Error(error.code(), "the event source " + name + " can't be used: " + error.what());
            }
        }
        known += std::string(", ") + kind.name;
    }
    throw Error(EINVAL, "there is no event source " + name + "; known are " + known);
}

} // namespace

std::vector<std::string> source_names()
{
    std::vector<std::string> names;
    for (const SourceKind &kind : source_kinds())
        names.emplace_back(kind.name);
    return names;
}

std::shared_ptr<Source> open_source(const std::string &name, const SourceOptions &options)
{
    Open &open = this_process();
    const std::lock_guard guard(open.mutex);
    if (auto source = open.source.lock()) {
        if ((name != "auto" && name != source->name()) || options.caches_shared != open.options.caches_shared)
            throw Error(EBUSY, std::string("another domain of this process uses the event source ") + source->name() +
                                   " with other settings; all domains of a process use the same");
        return source;
    }
    auto source = name == "auto" ? start_best(options, open.has_told_why) : start_named(name, options);
    open.source = source;
    open.options = options;
    return source;
}

} // namespace regcache
