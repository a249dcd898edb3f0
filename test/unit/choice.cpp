// SPDX-License-Identifier: BSD-2-Clause
// vm/choice.cpp: which source is used, what is said about it, and how refusals of the kernel are told. Each test is a
// process of its own.
#include "prov/refusals.hpp"
#include "support/child.hpp"
#include "support/log_lines.hpp"
#include "support/real_sources.hpp"

#include "vm/choice.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

struct Refused {
    int code = 0;
    std::string what;
    bool says(const std::string &words) const { return what.find(words) != std::string::npos; }
};

Refused open_fails(const std::string &name, const SourceOptions &options = {})
{
    try {
        open_source(name, options);
        return {};
    } catch (const Error &error) {
        return {error.code(), error.what()};
    }
}

constexpr unsigned kNobody = 65534;

// This thread becomes user nobody and may not have a userfaultfd; false when it could still have one.
bool hide_userfaultfd(int error)
{
    if (syscall(SYS_getuid) == 0)
        syscall(SYS_setresuid, kNobody, kNobody, kNobody);
    const Fd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    return !device && refuse(SYS_userfaultfd, kAnyCommand, error);
}

void without_userfaultfd(int error, const std::function<void()> &body)
{
    bool is_hidden = false;
    on_own_thread([&] {
        is_hidden = hide_userfaultfd(error);
        if (is_hidden)
            body();
    });
    if (!is_hidden)
        skip("/dev/userfaultfd can be opened by anybody here, or no seccomp filter can be set");
}

} // namespace

Test(choice, auto_is_the_first_that_starts)
{
    std::string first;
    for (const SourceKind &kind : source_kinds())
        try {
            kind.start({});
            first = kind.name;
            break;
        } catch (const Error &) {
        }
    const LogLines log;
    const auto source = open_source("auto", {});
    cr_expect(first == source->name());
    // Why it isn't the best one is said in one line.
    cr_expect(log.all() == (source_names().front() == first ? 0 : 1), "%s", log.text().c_str());
}

Test(choice, caches_of_a_process_share_one_source)
{
    auto first = open_source("auto", {});
    const auto second = open_source("auto", {});
    cr_expect(first == second);
    cr_expect(open_source(first->name(), {}) == first);
    std::weak_ptr<Source> watch = first;
    first.reset();
    cr_expect(!watch.expired());
}

Test(choice, source_ends_with_its_last_cache_and_can_be_opened_again)
{
    const Base before = measure_base();
    for (int i = 0; i < 5; ++i) {
        const auto source = open_source("auto", {});
        cr_expect(source->position() == source->position());
    }
    cr_expect(is_back_at_base(before));
}

Test(choice, reason_is_said_once_for_each_process)
{
    const LogLines log;
    for (int i = 0; i < 3; ++i)
        open_source("auto", {});
    cr_expect(log.all() <= 1, "%s", log.text().c_str());
}

Test(choice, source_asked_for_by_name_is_that_one)
{
    const LogLines log;
    cr_expect(std::string(open_source("none", {})->name()) == "none");
    if (open_fails("userfaultfd").code == 0)
        cr_expect(std::string(open_source("userfaultfd", {})->name()) == "userfaultfd");
    cr_expect(log.all() == 0, "%s", log.text().c_str());
}

Test(choice, unknown_name_is_refused_with_the_known_ones)
{
    const Refused refused = open_fails("magic");
    cr_expect(refused.code == EINVAL);
    cr_expect(refused.says("magic") && refused.says("auto"));
    for (const std::string &name : source_names())
        cr_expect(refused.says(name));
    cr_expect(open_fails("").code == EINVAL);
}

Test(choice, other_settings_than_those_in_use_are_refused)
{
    const auto source = open_source("none", {});
    SourceOptions shared;
    shared.caches_shared = true;
    for (const Refused &refused : {open_fails("none", shared), open_fails("auto", shared), open_fails("userfaultfd")}) {
        cr_expect(refused.code == EBUSY);
        cr_expect(refused.says("none") && refused.says("other settings"));
    }
    cr_expect(open_source("auto", {}) == source);
}

Test(choice, failed_source_leaves_the_way_free_for_another)
{
    without_userfaultfd(EPERM, [] {
        cr_expect(open_fails("userfaultfd").code == EPERM);
        const auto none = open_source("none", {});
        cr_expect(std::string(none->name()) == "none");
    });
}

Test(choice, refused_userfaultfd_is_told_with_its_remedy)
{
    struct Case {
        int error;
        const char *words;
    };
    for (const Case each : {Case{EPERM, "seccomp"}, Case{EPERM, "vm.unprivileged_userfaultfd"}, Case{EACCES, "/dev/userfaultfd"},
                            Case{ENOSYS, "the kernel was built without it"}, Case{EMFILE, "userfaultfd(2)"}})
        without_userfaultfd(each.error, [&] {
            const Refused refused = open_fails("userfaultfd");
            cr_expect(refused.code == each.error);
            cr_expect(refused.says("the event source userfaultfd can't be used: "), "%s", refused.what.c_str());
            cr_expect(refused.says(each.words), "%s", refused.what.c_str());
        });
}

Test(choice, auto_ends_at_none_with_one_warning)
{
    without_userfaultfd(EPERM, [] {
        const LogLines log;
        for (int i = 0; i < 2; ++i)
            cr_expect(std::string(open_source("auto", {})->name()) == "none" || log.all() == 0);
        if (std::string(open_source("auto", {})->name()) != "none")
            return; // a better one starts
        cr_expect(log.warnings("the event source none is used, so nothing is cached") == 1, "%s", log.text().c_str());
        cr_expect(log.warnings("userfaultfd: ") == 1 && log.all() == 1, "%s", log.text().c_str());
    });
}

// The parent's source is dead in the child, and another one works there.
Test(choice, forked_child_opens_a_source_of_its_own)
{
    skip_under_sanitizer("a child of a process with threads may hang in its allocator");
    const auto source = open_source("auto", {});
    const int status = status_of_child([&] {
        const auto own = open_source("auto", {});
        if (own == source || std::string(own->name()) != source->name())
            return 1;
        return open_source("auto", {}) == own ? 0 : 2;
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(open_source("auto", {}) == source);
}

Test(choice, forked_child_may_choose_other_settings)
{
    skip_under_sanitizer("a child of a process with threads may hang in its allocator");
    const auto source = open_source("auto", {});
    const int status = status_of_child([] { return std::string(open_source("none", {})->name()) == "none" ? 0 : 1; });
    cr_expect(status == 0, "status %d", status);
}
