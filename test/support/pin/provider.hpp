// SPDX-License-Identifier: BSD-2-Clause
// What libfabric sees of pin first: its name, its parameters, how it is found and opened.
#pragma once

#include "pin.h"

#include <rdma/providers/fi_prov.h>

namespace pin {

inline constexpr char kName[] = "pin";
inline constexpr char kAddress[] = "fi_pin://0";

extern fi_provider provider;

// The values of FI_PIN_<PARAMETER>, read anew each time. nullptr, the default or false when not set.
const char *text_parameter(const char *parameter);
std::uint64_t size_parameter(const char *parameter, std::uint64_t otherwise);
bool is_set_parameter(const char *parameter);

// One line on stderr, "pin: ...". Not through libfabric's log, which is silent unless FI_LOG_LEVEL is set.
[[gnu::format(printf, 1, 2)]] void warn(const char *format, ...);

int getinfo(std::uint32_t version, const char *node, const char *service, std::uint64_t flags, const fi_info *hints,
            fi_info **info);
int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context);

// The table behind pin.h.
extern const pin_ops kPinOps;

} // namespace pin
