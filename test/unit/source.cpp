// SPDX-License-Identifier: BSD-2-Clause
// vm/source.cpp, vm/none.hpp and vm/sources.cpp: words for users, the source that sees nothing, the table of sources.
#include "vm/sources.hpp"

#include "vm/choice.hpp"
#include "vm/none.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;

Test(source, every_answer_has_words_of_its_own)
{
    std::set<std::string> words;
    for (unsigned answer = 0; answer < kWatchAnswers; ++answer)
        words.insert(describe(static_cast<Watch>(answer)));
    cr_expect(words.size() == kWatchAnswers);
    cr_expect(words.count("") == 0);
    cr_expect(*describe(static_cast<Watch>(kWatchAnswers)) == '\0');
}

Test(source, remedies_are_named)
{
    cr_expect(std::string(describe(Watch::SharedKind)).find("FI_REGCACHE_SHARED=always") != std::string::npos);
    cr_expect(std::string(describe(Watch::TooMany)).find("vm.max_map_count") != std::string::npos);
}

Test(source, none_sees_nothing_and_watches_nothing)
{
    None none;
    WatchedRange watched{{0x1000, 0x2000}, {}};
    cr_expect(none.watch(watched) == Watch::NoEvents);
    none.unwatch(watched);
    cr_expect(none.position() == 0);
    std::uint64_t position = 1;
    cr_expect(none.try_position(position) && position == 0);
    cr_expect(none.confirm_waits() == 0);
    cr_expect(none.look_every_ms() >= 100);
    EventQueue::Cursor cursor = none.end();
    Event event;
    cr_expect(none.next(cursor, event) == EventQueue::Next::Empty);
    none.stop();
    cr_expect(std::string(none.name()) == "none");
}

Test(source, last_of_the_table_always_starts)
{
    const auto kinds = source_kinds();
    cr_assert(!kinds.empty());
    cr_expect(std::string(kinds.back().name) == "none");
    cr_expect(std::string(kinds.back().start({})->name()) == "none");
}

Test(source, names_of_the_table_are_those_that_can_be_asked_for)
{
    std::vector<std::string> names;
    for (const SourceKind &kind : source_kinds())
        names.emplace_back(kind.name);
    cr_expect(names == source_names());
    cr_expect(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    cr_expect(std::find(names.begin(), names.end(), "auto") == names.end());
}
