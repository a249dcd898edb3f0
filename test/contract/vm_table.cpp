// SPDX-License-Identifier: BSD-2-Clause
// Every operation on every kind of memory over every event source that starts here: is what is measured what is expected?
// "vm_table --print" prints the measured table in Markdown. Each cell is a process of its own (vm_cell.hpp).
#include "contract/vm_cell.hpp"

#include "support/base.hpp"
#include "support/pin/ring.hpp"
#include "support/skip.hpp"

#include "sys/error.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

struct Subject {
    const SourceKind &kind;
    bool watches_shared;
    bool is_userfaultfd() const { return std::string_view(kind.name) == "userfaultfd"; }
    std::string name() const
    {
        return std::string(kind.name) + (is_userfaultfd() && watches_shared ? ", FI_REGCACHE_SHARED=always" : "");
    }
};

constexpr unsigned kExpects(Answer answer)
{
    return 1u << static_cast<unsigned>(answer);
}

// The answers that are right. Where a kernel has closed a hole, or doesn't do something, nothing is wrong.
unsigned expected(const Subject &subject, AreaKind kind, const Operation &operation)
{
    const bool is_anonymous = (kAnonymous & bit(kind)) != 0;
    unsigned right = kExpects(Answer::NotApplicable) | kExpects(Answer::Missing) | kExpects(Answer::Refused);
    if (!is_anonymous && subject.is_userfaultfd()) {
        right |= kExpects(Answer::NotCached); // with shared memory: files can't be watched before 6.7
        if (!subject.watches_shared)
            return right;
    }
    const bool keeps = operation.effect == Effect::Keeps || (operation.keeps & bit(kind)) != 0;
    const bool is_told = operation.told != Told::Never || !subject.is_userfaultfd();
    if (operation.effect == Effect::Keeps && operation.told == Told::Rightly)
        return right | kExpects(Answer::Untouched);
    if (keeps)
        return right | kExpects(Answer::Untouched) | kExpects(Answer::Invalidated);
    return right | kExpects(Answer::Invalidated) | (is_told ? 0 : kExpects(Answer::Hole));
}

const char *symbol(Answer answer)
{
    switch (answer) {
    case Answer::NotApplicable:
        return "";
    case Answer::Missing:
        return "?";
    case Answer::Refused:
        return "–";
    case Answer::NotCached:
        return "no";
    case Answer::Invalidated:
        return "yes";
    case Answer::Untouched:
        return "kept";
    case Answer::Hole:
        return "**HOLE**";
    case Answer::Broken:
        break;
    }
    return "broken";
}

class Table {
public:
    Table(const Subject &subject, bool prints) : subject_(subject), prints_(prints) {}

    void run()
    {
        for (const Operation &operation : operations()) {
            std::string row = std::string("| ") + operation.name + " |";
            for (const AreaKind kind : kAreaKinds)
                row += std::string(" ") + symbol(cell(kind, operation).answer) + " |";
            rows_.push_back(row);
        }
        if (prints_)
            print();
        for (const auto &[what, times] : notes_)
            std::fprintf(prints_ ? stderr : stdout, "%s: %s (%u cells)\n", subject_.name().c_str(), what.c_str(), times);
        std::fprintf(prints_ ? stderr : stdout, "%s: %u cells measured, %u of them with pinned pages, %u are holes, %u wrong\n",
                     subject_.name().c_str(), measured_, pinned_, holes_, wrong_);
    }
    unsigned wrong() const { return wrong_; }
    unsigned cached() const { return cached_; }

private:
    Outcome cell(AreaKind kind, const Operation &operation)
    {
        if (operation.forks && sanitizer()) {
            ++notes_["skipped where threads run while it forks: " + under_sanitizer("a child may hang")];
            return {Answer::Missing, 0, false, ""};
        }
        if (operation.by_malloc && sanitizer()) {
            ++notes_["skipped: " + under_sanitizer("its allocator keeps what is freed")];
            return {Answer::Missing, 0, false, ""};
        }
        const Outcome outcome = run_cell(subject_.kind, subject_.watches_shared, kind, operation);
        const std::string name = std::string(operation.name) + ", " + name_of(kind);
        if (outcome.answer == Answer::Missing)
            ++notes_[std::string("skipped: ") + name_of(kind) + ": " + outcome.text];
        if (outcome.answer == Answer::Refused)
            ++notes_[std::string("the kernel refuses ") + operation.name + ": " + outcome.text];
        measured_ += outcome.answer >= Answer::NotCached;
        cached_ += outcome.answer >= Answer::Invalidated;
        pinned_ += outcome.is_pinned;
        holes_ += outcome.answer == Answer::Hole;
        if ((expected(subject_, kind, operation) & kExpects(outcome.answer)) == 0) {
            ++wrong_;
            std::fprintf(stderr, "WRONG: %s: %s: measured \"%s\" %s\n", subject_.name().c_str(), name.c_str(),
                         symbol(outcome.answer), outcome.text);
        }
        return outcome;
    }
    void print() const
    {
        std::printf("\n### %s\n\n| |", subject_.name().c_str());
        for (const AreaKind kind : kAreaKinds)
            std::printf(" %s |", name_of(kind));
        std::printf("\n|---|");
        for (std::size_t i = 0; i < kAreaKinds.size(); ++i)
            std::printf("---|");
        for (const std::string &row : rows_)
            std::printf("\n%s", row.c_str());
        std::printf("\n");
    }

    const Subject subject_;
    const bool prints_;
    std::vector<std::string> rows_;
    std::map<std::string, unsigned> notes_;
    unsigned measured_ = 0, cached_ = 0, pinned_ = 0, holes_ = 0, wrong_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    const bool prints = argc > 1 && std::string_view(argv[1]) == "--print";
    std::FILE *const notes = prints ? stderr : stdout;
    if (std::string why; pin::probe(why) != 0)
        std::fprintf(notes, "pages can't be pinned here, so changes that only a card sees go unseen: %s\n", why.c_str());
    if (prints)
        std::printf("yes: cached, and invalidated by the operation; kept: cached, and the pages stay; no: not cached;\n"
                    "HOLE: cached, and the change goes unseen; –: refused by the kernel; ?: not on this machine.\n");
    unsigned wrong = 0, cached = 0;
    for (const SourceKind &kind : source_kinds()) {
        if (std::string_view(kind.name) == "none")
            continue;
        for (const bool watches_shared : {false, true}) {
            const Subject subject{kind, watches_shared};
            if (watches_shared && !subject.is_userfaultfd())
                continue; // makes no difference there
            const Outcome first = run_cell(kind, watches_shared, AreaKind::Private, operations().front());
            if (first.answer == Answer::Missing) {
                std::fprintf(notes, "skipped: %s: %s\n", subject.name().c_str(), first.text);
                continue;
            }
            Table table(subject, prints);
            table.run();
            wrong += table.wrong();
            cached += table.cached();
        }
    }
    if (wrong != 0)
        return 1;
    if (cached == 0)
        skip_program("no event source starts here");
    return 0;
}
