// SPDX-License-Identifier: BSD-2-Clause
// Is an address that was given away and taken again ever served by its old pages? One thread unmaps, another takes the
// address at once, often before the event of the unmapping was read, and looks through the registration that it gets, which
// pins. The control does the same over a source that doesn't confirm, and must find old pages.
#include "stress/pinning_lower.hpp"
#include "stress/place.hpp"
#include "stress/unconfirmed.hpp"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>

#include <fstream>
#include <string>
#include <thread>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr std::size_t kPages = 4;

// One address of kPages, and a place to move pages to.
struct Place {
    const std::size_t bytes = kPages * regcache::page_size();
    char *const address = untouched_addresses(4 * bytes);
    char *const elsewhere = address + 2 * bytes;
};

bool take(char *address, std::size_t bytes)
{
    void *const got =
        mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED && got != address)
        munmap(got, bytes);
    return got == address;
}

// Where threads run, so that an address is taken before the event of its last owner is read: the one who takes it spins on
// `first`, and the thread that reads events may run only there, and only when nobody else wants to.
class Cores {
public:
    Cores()
    {
        sched_getaffinity(0, sizeof all_, &all_);
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &all_)) {
                (first < 0 ? first : second) = core;
                if (second >= 0)
                    break;
            }
        if (second < 0)
            second = first;
        const cpu_set_t one = only(first);
        put_reader(one, SCHED_IDLE);
    }
    ~Cores()
    {
        sched_setaffinity(0, sizeof all_, &all_);
        put_reader(all_, SCHED_OTHER);
    }
    Cores(const Cores &) = delete;
    Cores &operator=(const Cores &) = delete;

    static void run_on(int core)
    {
        const cpu_set_t one = only(core);
        sched_setaffinity(0, sizeof one, &one);
    }

    int first = -1, second = -1;

private:
    static cpu_set_t only(int core)
    {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        return one;
    }

    static void put_reader(const cpu_set_t &cores, int policy)
    {
        DIR *const tasks = opendir("/proc/self/task");
        while (const dirent *entry = tasks ? readdir(tasks) : nullptr) {
            std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
            std::string name;
            std::getline(file, name);
            if (name != "regcache-events")
                continue;
            const int task = std::atoi(entry->d_name);
            const sched_param none{};
            sched_setaffinity(task, sizeof cores, &cores);
            sched_setscheduler(task, policy, &none);
        }
        if (tasks)
            closedir(tasks);
    }

    cpu_set_t all_;
};

struct Sum {
    std::atomic<std::uint64_t> rounds{0}, hits{0}, early{0}, stale{0};
};

class Reuse {
public:
    Reuse(const std::shared_ptr<Source> &source, Failures &failures)
        : lower_(failures), cache_(CacheOptions{.limits = {}, .ends_with_use = 0, .name = "reuse"}, source, lower_)
    {
    }

    // One thread alone.
    void alone(std::uint64_t rounds)
    {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            while (!take(place_.address, place_.bytes))
                sched_yield();
            use();
            use(); // a hit
            munmap(place_.address, place_.bytes);
        }
    }

    // Two threads take turns. Where `cores` says where they run, every second time is forced to be early.
    void by_turns(std::uint64_t rounds, const Until &until, std::uint64_t seed, const Cores *cores = nullptr)
    {
        last_ = rounds;
        turn_ = 0;
        ready_ = 0;
        given_ = 0;
        std::thread other([&] {
            if (cores)
                Cores::run_on(cores->first);
            take_turns(1, until, seed + 1);
        });
        if (cores)
            Cores::run_on(cores->second);
        take_turns(0, until, seed);
        other.join();
    }

    Sum sum;
    StatisticsSnapshot statistics() const { return cache_.statistics(); }

private:
    void take_turns(std::uint64_t mine, const Until &until, std::uint64_t seed)
    {
        Random random(seed);
        for (std::uint64_t round = mine; round < last_.load(); round += 2) {
            for (std::uint64_t turn = turn_.load(); turn < round; turn = turn_.load())
                turn_.wait(turn); // asleep, so that the reader may run
            if (turn_.load() != round)
                break;
            ready_.store(round);
            // The other one gives the address away at this moment.
            while (!take(place_.address, place_.bytes)) {
            }
            if (round != 0 && given_.load() != round)
                sum.early.fetch_add(1); // its call hasn't returned
            use();
            const bool is_last = round + 1 >= last_.load() || until.is_over();
            turn_.store(is_last ? kOver : round + 1);
            turn_.notify_all();
            while (!is_last && ready_.load() != round + 1)
                sched_yield();
            give(random);
            given_.store(round + 1);
            if (is_last)
                break;
        }
    }

    void give(Random &random)
    {
        if (one_in(random, 4) && mremap(place_.address, place_.bytes, place_.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                        place_.elsewhere) != MAP_FAILED)
            return;
        munmap(place_.address, place_.bytes);
    }

    // Fills the pages with something new, registers them and looks whether the card sees it.
    void use()
    {
        const std::size_t page = regcache::page_size();
        const std::uint64_t mark = ++mark_;
        for (std::size_t i = 0; i < kPages; ++i)
            *reinterpret_cast<std::uint64_t *>(place_.address + i * page) = mark + i;
        Region *region = nullptr;
        if (const int error = cache_.acquire(place_.address, place_.bytes, 1, Match::Anywhere, &region); error != 0) {
            std::fprintf(stderr, "acquire fails with %d\n", error);
            std::abort();
        }
        bool is_stale = false;
        for (std::size_t i = 0; i < kPages; ++i)
            is_stale |= lower_.read_through(*region, place_.address + i * page) != mark + i;
        cache_.release(region);
        sum.rounds.fetch_add(1);
        if (is_stale)
            sum.stale.fetch_add(1);
    }

    Place place_;
    PinningLower lower_;
    Cache cache_;
    std::uint64_t mark_ = 0; // whose turn it is writes it
    std::atomic<std::uint64_t> last_{0};
    static constexpr std::uint64_t kOver = UINT64_MAX;
    std::atomic<std::uint64_t> turn_{0};  // who has this round takes the address
    std::atomic<std::uint64_t> ready_{0}; // who takes the address in this round is awake
    std::atomic<std::uint64_t> given_{0}; // the call that gave the address away for this round has returned
};

void print(const char *what, const Reuse &reuse)
{
    const StatisticsSnapshot seen = reuse.statistics();
    std::printf("%s: %llu uses, %llu with the event of the last owner not read yet, %llu stale; %llu hits, %llu invalidated, "
                "%llu waits\n",
                what, static_cast<unsigned long long>(reuse.sum.rounds.load()),
                static_cast<unsigned long long>(reuse.sum.early.load()),
                static_cast<unsigned long long>(reuse.sum.stale.load()), static_cast<unsigned long long>(seen.hits),
                static_cast<unsigned long long>(seen.invalidations), static_cast<unsigned long long>(seen.confirm_waits));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options("reuse", argc, argv);
    // Address space is given away and taken again at a chosen place: a sanitizer's run time maps memory of its own there.
    PinningLower::probe_or_skip();
    const Watchdog watchdog("reuse", kLimitS / patience());
    Failures failures;
    const std::shared_ptr<Source> source = userfaultfd_or_skip();
    const std::uint64_t rounds = options.is_long ? 1'000'000 : 20'000;
    {
        Reuse reuse(source, failures);
        reuse.alone(10'000);
        print("one thread", reuse);
        failures.unless(reuse.sum.stale.load() == 0, "one thread sees old pages");
        failures.unless(reuse.statistics().hits != 0, "nothing was ever served from the cache");
    }
    {
        Reuse reuse(source, failures);
        reuse.by_turns(rounds / 4, Until(options.is_long ? 60'000 : 20'000), options.seed);
        print("two threads", reuse);
        failures.unless(reuse.sum.stale.load() == 0, "two threads see old pages");
    }
    const Cores cores;
    {
        Reuse reuse(source, failures);
        reuse.by_turns(rounds, Until(options.is_long ? 200'000 : 30'000), options.seed, &cores);
        print("two threads, forced", reuse);
        failures.unless(reuse.sum.stale.load() == 0, "two threads see old pages");
    }
    {
        Reuse reuse(std::make_shared<Unconfirmed>(source), failures);
        const Until until(60'000);
        do
            reuse.by_turns(rounds / 20, until, options.seed, &cores);
        while (reuse.sum.stale.load() == 0 && !until.is_over());
        print("control, without confirmation", reuse);
        failures.unless(reuse.sum.stale.load() != 0, "the control sees no old pages: this test proves nothing");
    }
    return failures.status();
}
