// SPDX-License-Identifier: BSD-2-Clause
// The parameters that users set in the environment: one table for libfabric's list, their values and their checks.
#pragma once

#include "fid/settings.hpp"

#include <rdma/providers/fi_prov.h>

#include <string>
#include <vector>

namespace regcache {

struct Parameters {
    Settings settings;
    std::vector<std::string> lowers; // names of lower providers
    bool excludes_lowers = false;    // true: all but these
    bool is_always_offered = false;
};

// Makes them known to libfabric (fi_info -e). Once, while the library is loaded.
void define_parameters(const fi_provider &provider) noexcept;

// Writes a warning, unless the same one has been written: parameters are read again at each fi_getinfo, which layered
// providers repeat.
void warn_once(const std::string &line);

// Reads them. A value that isn't allowed is named in one warning, and the default is taken, except where that would be
// unsafe: then Error (EINVAL) is thrown.
Parameters read_parameters(fi_provider &provider);

} // namespace regcache
