// SPDX-License-Identifier: BSD-2-Clause
// Whether a source keeps its promise on this very kernel: changes pages of its own and looks whether the source tells.
#pragma once

#include "vm/source.hpp"

namespace regcache {

// Makes every kind of change that the source claims to see, each on a few private pages. Throws Error, naming the first
// change that went unseen or the wish to watch that was refused. About a millisecond.
void prove(Source &source);

} // namespace regcache
