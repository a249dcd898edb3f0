// SPDX-License-Identifier: BSD-2-Clause
// vm/mapping.cpp: what is said to be mapped, by both ways of asking.
#include "vm/mapping.hpp"

#include "support/memory.hpp"
#include "support/skip.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using test::Kind;
using test::skip;

namespace {

struct Line {
    Range range;
    std::string rights, name;
    std::uint64_t inode = 0;
};

// All of /proc/self/maps, read here.
std::vector<Line> read_maps()
{
    std::vector<Line> lines;
    std::ifstream maps("/proc/self/maps");
    for (std::string text; std::getline(maps, text);) {
        Line line;
        std::string range, offset, device;
        std::istringstream words(text);
        words >> range >> line.rights >> offset >> device >> line.inode;
        std::getline(words >> std::ws, line.name);
        std::sscanf(range.c_str(), "%" SCNxPTR "-%" SCNxPTR, &line.range.begin, &line.range.end);
        lines.push_back(line);
    }
    return lines;
}

MappingReader text_reader()
{
    MappingReader reader;
    reader.read_text_only();
    return reader;
}

bool can_query()
{
    // PROCMAP_QUERY is there since 6.11; where it is, it tells the size of pages.
    regcache::Mapping mapping;
    return MappingReader().find(reinterpret_cast<std::uintptr_t>(&can_query), mapping) && mapping.page_bytes != 0;
}

regcache::Mapping at(const MappingReader &reader, const void *address)
{
    regcache::Mapping mapping;
    cr_assert(reader.find(reinterpret_cast<std::uintptr_t>(address), mapping));
    return mapping;
}

// Whether a mapping of just this range is there now.
bool is_there(const Range &range)
{
    for (const Line &line : read_maps())
        if (line.range == range)
            return true;
    return false;
}

} // namespace

Test(mapping, both_ways_of_asking_agree_with_all_of_maps)
{
    const MappingReader question, text = text_reader();
    if (!can_query())
        std::puts("the kernel answers no questions here: text alone is compared");
    std::vector<test::Mapping> more; // of each kind
    for (const Kind kind : test::all_kinds())
        try {
            more.emplace_back(kind, 3 * page_size());
        } catch (const test::Unavailable &) {
        }
    std::size_t compared = 0;
    for (const Line &line : read_maps()) {
        // What the comparison itself changes, and what the kernel maps for itself.
        if (line.name == "[heap]" || line.name == "[stack]" || line.name == "[vsyscall]")
            continue;
        for (const std::uintptr_t address : {line.range.begin, line.range.begin + line.range.size() / 2, line.range.end - 1})
            for (const MappingReader *reader : {&question, &text}) {
                regcache::Mapping mapping;
                if (!reader->find(address, mapping))
                    continue; // unmapped meanwhile, by the C library
                if (!(mapping.range == line.range) && !is_there(line.range))
                    continue; // grown or joined meanwhile, by an allocator
                const bool is_file = line.inode != 0 && line.name.rfind("/anon_hugepage", 0) != 0;
                cr_expect(mapping.range == line.range, "%s", line.name.c_str());
                cr_expect(mapping.is_shared == (line.rights[3] == 's'), "%s", line.name.c_str());
                cr_expect(mapping.is_file == is_file, "%s", line.name.c_str());
                ++compared;
            }
    }
    cr_expect(compared > 60, "only %zu were compared", compared);
}

Test(mapping, kinds_are_told_apart)
{
    struct Expected {
        Kind kind;
        bool is_shared, is_file;
    };
    const Expected all[] = {{Kind::Private, false, false},   {Kind::Shared, true, true},    {Kind::Memfd, true, true},
                            {Kind::SysV, true, true},        {Kind::FilePrivate, false, true}, {Kind::FileShared, true, true},
                            {Kind::Thp, false, false}};
    const MappingReader question, text = text_reader();
    for (const Expected &expected : all)
        for (const MappingReader *reader : {&question, &text}) {
            const test::Mapping memory(expected.kind, 3 * page_size());
            const regcache::Mapping mapping = at(*reader, memory.data() + page_size());
            cr_expect(mapping.is_shared == expected.is_shared, "%s", test::name_of(expected.kind));
            // Shared memory without a name has a file of the kernel's; as it is shared, that is no matter.
            cr_expect(mapping.is_shared || mapping.is_file == expected.is_file, "%s", test::name_of(expected.kind));
            cr_expect(mapping.range.contains(Range::of(memory.data(), memory.size())));
        }
}

Test(mapping, private_huge_pages_have_no_file_of_the_users)
{
    try {
        const test::Mapping memory(Kind::HugeTlb, 1);
        const MappingReader question, text = text_reader();
        for (const MappingReader *reader : {&question, &text}) {
            const regcache::Mapping mapping = at(*reader, memory.data());
            cr_expect(!mapping.is_file && !mapping.is_shared);
            cr_expect(mapping.page_bytes == memory.size() || mapping.page_bytes == 0);
        }
    } catch (const test::Unavailable &reason) {
        skip(reason.what());
    }
}

Test(mapping, page_size_is_told_where_the_kernel_answers_questions)
{
    if (!can_query())
        skip("this kernel has no PROCMAP_QUERY (6.11)");
    const test::Mapping memory(Kind::Private, page_size());
    cr_expect(at(MappingReader(), memory.data()).page_bytes == page_size());
    cr_expect(at(text_reader(), memory.data()).page_bytes == 0);
}

Test(mapping, nothing_is_found_where_nothing_is_mapped)
{
    const MappingReader question, text = text_reader();
    test::Mapping memory(Kind::Private, 8 * page_size());
    const auto hole = reinterpret_cast<std::uintptr_t>(memory.data() + page_size());
    cr_assert(munmap(memory.data() + page_size(), page_size()) == 0);
    for (const MappingReader *reader : {&question, &text}) {
        regcache::Mapping mapping;
        cr_expect(!reader->find(hole, mapping));
        cr_expect(!reader->find(0, mapping));
        cr_expect(!reader->find(UINTPTR_MAX, mapping));
        cr_expect(reader->find(hole - 1, mapping) && mapping.range.end == hole);
        cr_expect(reader->find(hole + page_size(), mapping) && mapping.range.begin == hole + page_size());
    }
}

// The text doesn't fit into the reader's memory at once: lines must be put together.
Test(mapping, text_of_many_mappings_is_read_to_its_end)
{
    constexpr std::size_t kMany = 2000;
    const test::Mapping memory(Kind::Private, kMany * page_size());
    for (std::size_t i = 0; i < kMany; i += 2)
        cr_assert(mprotect(memory.data() + i * page_size(), page_size(), PROT_READ) == 0);
    const MappingReader text = text_reader();
    for (std::size_t i = 0; i < kMany; i += 97)
        cr_expect(at(text, memory.data() + i * page_size()).range == Range::of(memory.data() + i * page_size(), page_size()));
    cr_expect(at(text, __builtin_frame_address(0)).range.size() >= page_size());
}

Test(mapping, file_with_a_very_long_name_confuses_nobody)
{
    const char *const folder = std::getenv("SCRATCH_DIR");
    std::string path = folder ? folder : "/tmp";
    for (int i = 0; i < 15; ++i) {
        path += "/" + std::string(250, static_cast<char>('a' + i));
        cr_assert(mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
    }
    path += "/0-1 rw-p 0 0:0 1 x"; // a name like the begin of a line
    const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    cr_assert(file && ftruncate(file.number(), static_cast<off_t>(page_size())) == 0);
    void *const memory = mmap(nullptr, page_size(), PROT_READ, MAP_PRIVATE, file.number(), 0);
    cr_assert(memory != MAP_FAILED);
    const test::Mapping other(Kind::Private, page_size());
    const MappingReader question, text = text_reader();
    for (const MappingReader *reader : {&question, &text}) {
        cr_expect(at(*reader, memory).is_file);
        cr_expect(!at(*reader, other.data()).is_file);
        cr_expect(at(*reader, other.data()).range.contains(Range::of(other.data(), other.size())));
    }
    munmap(memory, page_size());
}

Test(mapping, closed_reader_knows_nothing)
{
    MappingReader question, text = text_reader();
    for (MappingReader *reader : {&question, &text}) {
        cr_expect(reader->works());
        reader->close();
        cr_expect(!reader->works());
        regcache::Mapping mapping;
        cr_expect(!reader->find(reinterpret_cast<std::uintptr_t>(&mapping), mapping));
    }
}

Test(mapping, without_proc_nothing_is_known)
{
    // The last free descriptor is taken: opening fails as it does where /proc isn't mounted.
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{3, limit.rlim_max};
    std::vector<Fd> held;
    setrlimit(RLIMIT_NOFILE, &none);
    MappingReader reader;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (reader.works())
        skip("a descriptor below 3 is free here");
    regcache::Mapping mapping;
    cr_expect(!reader.find(reinterpret_cast<std::uintptr_t>(&limit), mapping));
    reader.read_text_only();
    cr_expect(!reader.find(reinterpret_cast<std::uintptr_t>(&limit), mapping));
}
