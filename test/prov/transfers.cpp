// SPDX-License-Identifier: BSD-2-Clause
// Bytes that really go from one endpoint to another over tcp (with ofi_rxm, which registers with the domain below it) and shm:
// messages and remote writes, in memory that stays and in memory that is mapped anew for each round.
#include "prov/changes.hpp"
#include "prov/messages.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr std::size_t kBytes = 256 << 10; // beyond what is copied through buffers of the provider

void must(int error, const char *what)
{
    if (error != 0)
        throw std::runtime_error(std::string(what) + ": " + fi_strerror(-error));
}

// An endpoint with a queue, in a domain that others share.
class Endpoint {
public:
    explicit Endpoint(Card &card)
    {
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_CONTEXT;
        cq_attr.size = 64;
        fi_av_attr av_attr{};
        must(fi_cq_open(card.domain(), &cq_attr, cq_.out(), nullptr), "fi_cq_open");
        must(fi_av_open(card.domain(), &av_attr, av_.out(), nullptr), "fi_av_open");
        must(fi_endpoint(card.domain(), card.info(), ep_.out(), nullptr), "fi_endpoint");
        must(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the queue");
        must(fi_ep_bind(ep_.get(), &av_->fid, 0), "fi_ep_bind of the addresses");
        must(fi_enable(ep_.get()), "fi_enable");
    }

    void knows(Endpoint &peer)
    {
        char name[256];
        std::size_t size = sizeof name;
        must(fi_getname(&peer.ep_->fid, name, &size), "fi_getname");
        if (fi_av_insert(av_.get(), name, 1, &peer_, 0, nullptr) != 1)
            throw std::runtime_error("fi_av_insert");
    }

    fid_ep *get() const { return ep_.get(); }
    fi_addr_t peer() const { return peer_; }
    unsigned completions = 0;

    void progress()
    {
        fi_cq_entry entry{};
        const ssize_t got = fi_cq_read(cq_.get(), &entry, 1);
        if (got == 1) {
            ++completions;
        } else if (got != -FI_EAGAIN) {
            fi_cq_err_entry why{};
            fi_cq_readerr(cq_.get(), &why, 0);
            throw std::runtime_error(std::string("a transfer failed: ") + fi_strerror(why.err));
        }
    }

private:
    Owned<fid_cq> cq_;
    Owned<fid_av> av_;
    Owned<fid_ep> ep_;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
};

class Pair {
public:
    explicit Pair(const Wish &wish) : card_(wish), sender_(card_), receiver_(card_)
    {
        sender_.knows(receiver_);
        receiver_.knows(sender_);
    }

    Card &card() { return card_; }

    // Repeats a call until the provider takes it.
    template <class Call>
    void post(Call call)
    {
        for (;;) {
            const ssize_t error = call();
            if (error == 0)
                return;
            if (error != -FI_EAGAIN)
                must(static_cast<int>(error), "posting");
            sender_.progress();
            receiver_.progress();
        }
    }

    void send(const char *from, const Region &from_region, char *to, const Region &to_region)
    {
        const unsigned sent = sender_.completions + 1, received = receiver_.completions + 1;
        post([&] { return fi_recv(receiver_.get(), to, kBytes, fi_mr_desc(to_region.get()), receiver_.peer(), nullptr); });
        post([&] { return fi_send(sender_.get(), from, kBytes, fi_mr_desc(from_region.get()), sender_.peer(), nullptr); });
        while (sender_.completions < sent || receiver_.completions < received) {
            sender_.progress();
            receiver_.progress();
        }
    }

    void write(const char *from, const Region &from_region, char *to, const Region &to_region)
    {
        const bool has_addresses = (card_.info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
        const unsigned sent = sender_.completions + 1;
        post([&] {
            return fi_write(sender_.get(), from, kBytes, fi_mr_desc(from_region.get()), sender_.peer(),
                            has_addresses ? reinterpret_cast<std::uint64_t>(to) : 0, fi_mr_key(to_region.get()), nullptr);
        });
        while (sender_.completions < sent) {
            sender_.progress();
            receiver_.progress();
        }
    }

private:
    Card card_;
    Endpoint sender_, receiver_;
};

// Sends and writes, and looks at each byte. The memory stays, or is another one at the same address in each round.
void transfer(const std::string &provider, const std::string &lower, bool stays)
{
    const Watchdog watchdog("transfers over " + lower);
    const Variable lowers("FI_REGCACHE_LOWER", lower);
    Wish wish = over(lower);
    wish.provider = provider;
    wish.type = FI_EP_RDM;
    if (!find_info(wish))
        skip(provider + " over " + lower + " isn't offered here");
    Pair pair(wish);
    const Mapping from(Kind::Private, kBytes), to(Kind::Private, kBytes);
    for (int round = 0; round < 30; ++round) {
        if (!stays) {
            cr_assert(replace_in_place(from.data(), kBytes));
            cr_assert(replace_in_place(to.data(), kBytes));
        }
        const Region from_region = pair.card().reg(from.data(), kBytes), to_region = pair.card().reg(to.data(), kBytes);
        cr_assert(from_region && to_region);
        for (const bool is_write : {false, true}) {
            for (std::size_t at = 0; at < kBytes; ++at)
                from.data()[at] = static_cast<char>(at * 31 + at / 4096 + static_cast<std::size_t>(2 * round + is_write));
            to.fill('?');
            if (is_write)
                pair.write(from.data(), from_region, to.data(), to_region);
            else
                pair.send(from.data(), from_region, to.data(), to_region);
            // A write that the sender has been told of may be on its way into the memory still.
            cr_expect(eventually([&] { return std::memcmp(from.data(), to.data(), kBytes) == 0; }), "round %d, %s", round,
                      is_write ? "a write" : "a message");
        }
    }
}

void transfer_and_count(const std::string &provider, const std::string &lower)
{
    {
        const Messages messages;
        const Variable stats("FI_REGCACHE_STATS", "yes");
        transfer(provider, lower, true);
        cr_expect(messages.statistic("hits") > messages.statistic("misses"), "%s", messages.text().c_str());
    }
    transfer(provider, lower, false);
}

} // namespace

// As test/run does for tcp: nothing leaves this machine.
TestSuite(transfers, .init = [] { setenv("FI_NET_IFACE", "lo", 1); });

Test(transfers, over_tcp) { transfer_and_count("regcache;ofi_rxm", "tcp"); }
Test(transfers, over_shm) { transfer_and_count("regcache", "shm"); }

Test(transfers, over_net)
{
    skip_under_sanitizer("the provider net keeps what it allocates for an endpoint, with the cache and without");
    transfer_and_count("regcache", "net");
}
