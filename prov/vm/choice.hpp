// SPDX-License-Identifier: BSD-2-Clause
// Which event source this process uses: the one asked for, or the first in order of preference that starts and passes its
// proof.
#pragma once

#include "vm/source.hpp"

#include <memory>
#include <string>
#include <vector>

namespace regcache {

struct SourceOptions {
    bool caches_shared = false; // also watch shared mappings and files, which may change without an event
};

// The names that open_source() takes, best first; without "auto".
std::vector<std::string> source_names();

// The process's source: the same one for every cache as long as any has it open. `name` is "auto" or one of
// source_names(). "auto" falls back down to none and logs once why; a source asked for by name that can't start throws
// Error, whose text names the reason. So does a name that isn't one, and one that differs from what is open already.
std::shared_ptr<Source> open_source(const std::string &name, const SourceOptions &options);

} // namespace regcache
