// SPDX-License-Identifier: BSD-2-Clause
// Why something could not be made: a positive errno-like code (libfabric's own are of the same numbers) and one clear
// sentence. Thrown only while objects are made, never on a path that serves a registration.
#pragma once

#include <stdexcept>
#include <string>

namespace regcache {

class Error : public std::runtime_error {
public:
    Error(int code, const std::string &what) : std::runtime_error(what), code_(code) {}
    int code() const noexcept { return code_; } // positive

private:
    int code_;
};

} // namespace regcache
