// SPDX-License-Identifier: BSD-2-Clause
// The table of parameters, and how texts become values.
#include "plugin/parameters.hpp"

#include "ofi/names.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "vm/choice.hpp"

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

namespace regcache {
namespace {

struct Parameter {
    const char *name; // FI_REGCACHE_ and this in capital letters is the variable
    const char *help;
};

constexpr Parameter kLower{"lower", "Lower providers to offer the cache over, separated by commas (tcp,shm), or ^ and those to "
                                    "leave out (default: every core provider)"};
constexpr Parameter kSource{"source", "Where changes of mappings are learnt from: auto, ebpf, userfaultfd, none (default: auto, "
                                      "the best that works here)"};
constexpr Parameter kMaxCount{"max_count", "Registrations that the cache of a domain holds at most; 0 caches nothing "
                                           "(default: from the device's limit)"};
constexpr Parameter kMaxSize{"max_size", "Bytes that the cache of a domain holds at most, with K, M, G or T for powers of 1024 "
                                         "(default: from the machine's memory and the process's limits)"};
constexpr Parameter kShared{"shared", "Whether shared mappings and files, which can change without an event on some sources, are "
                                      "cached there too: never, always (default: never)"};
constexpr Parameter kRemoteKeys{"remote_keys", "Whether a region with remote access stays in the cache, and its key valid, after "
                                               "fi_close: keep, close (default: keep)"};
constexpr Parameter kStats{"stats", "Whether each domain's numbers are printed when it is closed or at exit: yes, no (default: no)"};
constexpr Parameter kOffer{"offer", "When the provider answers fi_getinfo: asked (by FI_PROVIDER or by name), always "
                                    "(default: asked)"};
constexpr const Parameter *kAll[] = {&kLower, &kSource, &kMaxCount, &kMaxSize, &kShared, &kRemoteKeys, &kStats, &kOffer};

std::string variable(const Parameter &parameter)
{
    std::string name = std::string("FI_REGCACHE_") + parameter.name;
    for (char &letter : name)
        letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return name;
}

std::optional<std::string> text_of(fi_provider &provider, const Parameter &parameter)
{
    char *value = nullptr;
    if (fi_param_get_str(&provider, parameter.name, &value) != 0 || !value)
        return std::nullopt;
    return value;
}

std::string complaint(const Parameter &parameter, const std::string &value, const std::string &allowed)
{
    return variable(parameter) + "=" + value + " isn't allowed: " + allowed;
}

// One of two words; the first is the default.
bool is_second(fi_provider &provider, const Parameter &parameter, const char *first, const char *second)
{
    const auto value = text_of(provider, parameter);
    if (!value || is_same_name(*value, first))
        return false;
    if (is_same_name(*value, second))
        return true;
    warn_once(complaint(parameter, *value, std::string("it is ") + first + " or " + second) + "; " + first + " is taken");
    return false;
}

std::optional<std::size_t> number_of(fi_provider &provider, const Parameter &parameter, bool has_suffix)
{
    const auto value = text_of(provider, parameter);
    if (!value)
        return std::nullopt;
    char *end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(value->c_str(), &end, 10);
    unsigned shift = 0;
    constexpr std::string_view kSuffixes = "KMGT";
    if (has_suffix && *end != '\0') {
        const std::size_t at = kSuffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*end))));
        if (at != std::string_view::npos) {
            shift = 10 * (static_cast<unsigned>(at) + 1);
            ++end;
        }
    }
    const bool is_digit = std::isdigit(static_cast<unsigned char>((*value)[0])) != 0;
    if (is_digit && errno == 0 && *end == '\0' && number <= (std::numeric_limits<std::size_t>::max() >> shift))
        return static_cast<std::size_t>(number) << shift;
    warn_once(complaint(parameter, *value, has_suffix ? "it is a number, perhaps with K, M, G or T" : "it is a number") +
              "; the default is taken");
    return std::nullopt;
}

std::string source_of(fi_provider &provider)
{
    const auto value = text_of(provider, kSource);
    if (!value || is_same_name(*value, "auto"))
        return "auto";
    std::string known = "auto";
    for (const std::string &name : source_names()) {
        if (is_same_name(*value, name))
            return name;
        known += ", " + name;
    }
    // Another source than the one that was asked for may be wrong for this program.
    throw Error(EINVAL, complaint(kSource, *value, "it is one of " + known));
}

} // namespace

void define_parameters(const fi_provider &provider) noexcept
{
    for (const Parameter *parameter : kAll)
        fi_param_define(&provider, parameter->name, FI_PARAM_STRING, "%s", parameter->help);
}

void warn_once(const std::string &line)
{
    static std::mutex mutex;
    static std::set<std::string> written;
    {
        const std::lock_guard guard(mutex);
        if (!written.insert(line).second)
            return;
    }
    log(LogLevel::Warning, "%s", line.c_str());
}

Parameters read_parameters(fi_provider &provider)
{
    Parameters parameters;
    Settings &settings = parameters.settings;
    settings.source = source_of(provider);
    settings.max_count = number_of(provider, kMaxCount, false);
    settings.max_bytes = number_of(provider, kMaxSize, true);
    settings.caches_shared = is_second(provider, kShared, "never", "always");
    settings.keeps_remote_keys = !is_second(provider, kRemoteKeys, "keep", "close");
    settings.prints_statistics = is_second(provider, kStats, "no", "yes");
    parameters.is_always_offered = is_second(provider, kOffer, "asked", "always");
    if (const auto lowers = text_of(provider, kLower)) {
        parameters.excludes_lowers = !lowers->empty() && lowers->front() == '^';
        parameters.lowers = split(std::string_view(*lowers).substr(parameters.excludes_lowers ? 1 : 0), ',');
    }
    return parameters;
}

} // namespace regcache
