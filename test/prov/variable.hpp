// SPDX-License-Identifier: BSD-2-Clause
// An environment variable for as long as an object lives. Doesn't know what reads it, and when.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace regcache::test {

// Takes effect when the program next asks for the variable: libfabric reads FI_PROVIDER and FI_LOG_LEVEL at its first call
// and never again, regcache's parameters are read at each fi_getinfo and fi_fabric.
class Variable {
public:
    Variable(std::string name, const std::string &value) : name_(std::move(name))
    {
        if (const char *const old = std::getenv(name_.c_str()))
            old_ = old;
        setenv(name_.c_str(), value.c_str(), 1);
    }
    ~Variable()
    {
        if (old_)
            setenv(name_.c_str(), old_->c_str(), 1);
        else
            unsetenv(name_.c_str());
    }
    Variable(const Variable &) = delete;
    Variable &operator=(const Variable &) = delete;

private:
    std::string name_;
    std::optional<std::string> old_;
};

} // namespace regcache::test
