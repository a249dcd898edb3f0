// SPDX-License-Identifier: BSD-2-Clause
// How a process gets a userfaultfd, and which of its features. Watches nothing.
#pragma once

#include "sys/fd.hpp"

namespace regcache {

// A descriptor with the mapping events switched on, and asynchronous write protection where the kernel has it, so that
// any kind of mapping can be watched. Throws Error whose text names the reason and the remedy.
Fd open_userfaultfd();

} // namespace regcache
