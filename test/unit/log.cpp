// SPDX-License-Identifier: BSD-2-Clause
// sys/log.hpp: what the sink gets.
#include "sys/log.hpp"

#include "support/log_lines.hpp"

#include <string>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

Test(log, sink_gets_finished_lines_with_their_level)
{
    const LogLines lines;
    log(LogLevel::Warning, "%d of %s", 3, "four");
    log(LogLevel::Debug, "fine");
    cr_expect(lines.count(LogLevel::Warning, "3 of four") == 1);
    cr_expect(lines.count(LogLevel::Debug, "fine") == 1);
    cr_expect(lines.all() == 2);
}

Test(log, without_sink_goes_nowhere)
{
    set_log_sink(nullptr);
    log(LogLevel::Warning, "%s", "nobody hears it");
    const LogLines lines;
    cr_expect(lines.all() == 0);
}

Test(log, long_lines_are_cut)
{
    const LogLines lines;
    log(LogLevel::Info, "%s", std::string(5000, 'x').c_str());
    cr_expect(lines.text() == std::string(1023, 'x') + "\n");
}
