// SPDX-License-Identifier: BSD-2-Clause
// One reliable datagram endpoint and its peer, for the lab's programs: large messages there and back. Ends the program on
// any error; every wait is bounded by the program's alarm.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace lab {

[[noreturn]] inline void give_up(const char *what, int code)
{
    std::fprintf(stderr, "exchange: %s: %s\n", what, fi_strerror(code < 0 ? -code : code));
    std::_Exit(2);
}

inline void must(int code, const char *what)
{
    if (code != 0)
        give_up(what, code);
}

class Endpoint {
public:
    // `provider` is a full name, "verbs;ofi_rxm"; `node` an address of this machine.
    Endpoint(const std::string &provider, const char *node)
    {
        fi_info *hints = fi_allocinfo();
        hints->caps = FI_TAGGED;
        hints->ep_attr->type = FI_EP_RDM;
        hints->addr_format = FI_SOCKADDR_IN;
        hints->fabric_attr->prov_name = strdup(provider.c_str());
        must(fi_getinfo(FI_VERSION(1, 9), node, nullptr, FI_SOURCE, hints, &info_), "fi_getinfo");
        fi_freeinfo(hints);
        must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        fi_av_attr av{};
        av.type = FI_AV_TABLE;
        must(fi_av_open(domain_, &av, &av_, nullptr), "fi_av_open");
        fi_cq_attr cq{};
        cq.format = FI_CQ_FORMAT_CONTEXT;
        cq.size = 128;
        must(fi_cq_open(domain_, &cq, &cq_, nullptr), "fi_cq_open");
        must(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
        must(fi_ep_bind(endpoint_, &av_->fid, 0), "fi_ep_bind");
        must(fi_ep_bind(endpoint_, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        must(fi_enable(endpoint_), "fi_enable");
    }
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint()
    {
        fi_close(&endpoint_->fid);
        fi_close(&cq_->fid);
        fi_close(&av_->fid);
        fi_close(&domain_->fid);
        fi_close(&fabric_->fid);
        fi_freeinfo(info_);
    }

    // Trades addresses with the peer over `socket`.
    void meet(int socket)
    {
        char name[256] = {}, other[256] = {};
        std::size_t length = sizeof name;
        must(fi_getname(&endpoint_->fid, name, &length), "fi_getname");
        if (write(socket, name, sizeof name) != sizeof name || read(socket, other, sizeof other) != sizeof other)
            give_up("the peer is gone", EPIPE);
        if (fi_av_insert(av_, other, 1, &peer_, 0, nullptr) != 1)
            give_up("fi_av_insert", FI_EINVAL);
    }

    void post_receive(void *buffer, std::size_t bytes)
    {
        retry([&] { return fi_trecv(endpoint_, buffer, bytes, nullptr, peer_, 1, 0, &receiving_); }, "fi_trecv");
        received_ = false;
    }
    void post_send(const void *buffer, std::size_t bytes)
    {
        retry([&] { return fi_tsend(endpoint_, buffer, bytes, nullptr, peer_, 1, &sending_); }, "fi_tsend");
        sent_ = false;
    }
    void wait_received() { wait(received_); }
    void wait_sent() { wait(sent_); }

private:
    template <typename Call> void retry(Call call, const char *what)
    {
        ssize_t code;
        while ((code = call()) == -FI_EAGAIN)
            progress();
        must(static_cast<int>(code), what);
    }
    void wait(const bool &done)
    {
        while (!done)
            progress();
    }
    void progress()
    {
        fi_cq_entry entry{};
        const ssize_t got = fi_cq_read(cq_, &entry, 1);
        if (got == 1) {
            (entry.op_context == &receiving_ ? received_ : sent_) = true;
        } else if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            fi_cq_readerr(cq_, &error, 0);
            give_up("a message failed", error.err);
        } else if (got != -FI_EAGAIN) {
            give_up("fi_cq_read", static_cast<int>(got));
        } else {
            sched_yield(); // there may be fewer processors than processes
        }
    }

    fi_info *info_ = nullptr;
    fid_fabric *fabric_ = nullptr;
    fid_domain *domain_ = nullptr;
    fid_av *av_ = nullptr;
    fid_cq *cq_ = nullptr;
    fid_ep *endpoint_ = nullptr;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    fi_context2 receiving_{}, sending_{};
    bool received_ = true, sent_ = true;
};

} // namespace lab
