// SPDX-License-Identifier: BSD-2-Clause
// A program that shell tests start and look at from outside:
//
//   user plain           opens what FI_PROVIDER names, registers memory, and prints what the process holds meanwhile
//   user leave PROVIDER  ends with regcache over PROVIDER open, a region in use and others idle
//   user pairs COUNT     registers and closes the same memory over pin COUNT times, between two calls of getpgid(-1)
//
// 77: this machine hasn't got what it needs.
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/pin.h"
#include "support/skip.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

using namespace regcache::test;

namespace {

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: user plain | leave PROVIDER | pairs COUNT\n");
    std::exit(2);
}

Wish over(const std::string &lower)
{
    Wish wish;
    wish.provider = "regcache";
    wish.lower = lower;
    return wish;
}

// Threads by name, descriptors by kind, and how many mappings are somebody's userfaultfd's.
void print_holdings()
{
    std::multiset<std::string> threads, descriptors;
    if (DIR *const tasks = opendir("/proc/self/task")) {
        while (const dirent *entry = readdir(tasks)) {
            std::ifstream file(std::string("/proc/self/task/") + entry->d_name + "/comm");
            std::string name;
            if (std::getline(file, name))
                threads.insert(name);
        }
        closedir(tasks);
    }
    if (DIR *const folder = opendir("/proc/self/fd")) {
        while (const dirent *entry = readdir(folder)) {
            char target[512] = "";
            if (std::atoi(entry->d_name) <= STDERR_FILENO) // dots too
                continue;
            if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) <= 0)
                continue;
            const std::string kind(target, std::strcspn(target, "[")); // without an inode's number
            if (kind.rfind("/proc/", 0) != 0)
                descriptors.insert(kind);
        }
        closedir(folder);
    }
    unsigned watched = 0;
    std::ifstream maps("/proc/self/smaps");
    for (std::string line; std::getline(maps, line);)
        watched += line.rfind("VmFlags:", 0) == 0 &&
                   (line.find(" um") != std::string::npos || line.find(" uw") != std::string::npos);
    for (const std::string &name : threads)
        std::printf("thread %s\n", name.c_str());
    for (const std::string &kind : descriptors)
        std::printf("descriptor %s\n", kind.c_str());
    std::printf("%u mappings are watched\n", watched);
}

int plain()
{
    Wish wish;
    const char *const provider = std::getenv("FI_PROVIDER");
    wish.provider = provider ? provider : "";
    Card card(wish);
    const Mapping memory(Kind::Private, 8 * page_size());
    const Region region = card.reg(memory.data(), memory.size());
    print_holdings();
    return region ? 0 : 1;
}

int leave(const std::string &lower)
{
    auto *const card = new Card(over(lower)); // never closed
    auto *const memory = new Mapping(Kind::Private, 8 * page_size());
    for (int i = 0; i < 4; ++i)
        if (!card->reg(memory->data() + 2 * i * page_size(), page_size()))
            return 1;
    new Region(card->reg(memory->data(), memory->size()));
    std::printf("open\n");
    return 0;
}

int pairs(int count)
{
    const pin_ops *const pin = pin_find();
    char why[256];
    if (!pin || pin->unusable(why, sizeof why))
        skip_program(pin ? why : "the pin provider isn't there");
    Card card(over("pin"));
    const Mapping memory(Kind::Private, 16 * page_size());
    memory.fill('A');
    fid_mr *region = nullptr;
    const auto pair = [&] {
        return fi_mr_reg(card.domain(), memory.data(), memory.size(), kLocalRights, 0, 0, 0, &region, nullptr) == 0 &&
               fi_close(&region->fid) == 0;
    };
    bool is_right = pair() && pair();
    pin_counters before, after;
    pin->counters(&before);
    static_cast<void>(getpgid(-1));
    for (int i = 0; i < count; ++i)
        is_right = pair() && is_right;
    static_cast<void>(getpgid(-1));
    pin->counters(&after);
    if (!is_right || after.asked != before.asked) {
        std::fprintf(stderr, "pairs failed, or pin was asked %lu times\n", after.asked - before.asked);
        return 1;
    }
    return 0;
}

} // namespace

int main(int count, char **arguments)
{
    const std::string mode = count > 1 ? arguments[1] : "";
    try {
        if (mode == "plain" && count == 2)
            return plain();
        if (mode == "leave" && count == 3)
            return leave(arguments[2]);
        if (mode == "pairs" && count == 3)
            return pairs(std::atoi(arguments[2]));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "user: %s\n", error.what());
        return 1;
    }
    usage();
}
