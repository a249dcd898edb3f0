// SPDX-License-Identifier: BSD-2-Clause
// Endpoints that move data only inside the process: fi_read and fi_write between two registrations. Messages aren't sent.
#pragma once

#include "domain.hpp"
#include "queues.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

namespace pin {

// The one address there is.
int give_name(void *address, std::size_t *len);

// Plain endpoints, shared receive contexts and scalable ones: they differ in their class alone. Bind before use; binding
// and closing aren't safe against transfers (as libfabric says).
struct Endpoint final : fid_ep {
    using C = fid_ep;
    static bool is_class(std::size_t fclass)
    {
        return fclass == FI_CLASS_EP || fclass == FI_CLASS_SEP || fclass == FI_CLASS_SRX_CTX || fclass == FI_CLASS_TX_CTX ||
               fclass == FI_CLASS_RX_CTX;
    }
    Endpoint(std::size_t fclass, bool needs_desc, void *context);
    int close();
    int bind(struct fid *other, std::uint64_t flags);
    int control(int command, void *argument);
    int open_tx(int index, fi_tx_attr *attr, fid_ep **tx, void *context);
    int open_rx(int index, fi_rx_attr *attr, fid_ep **rx, void *context);
    int getname(void *address, std::size_t *len);
    int setopt(int level, int name, const void *value, std::size_t len);
    int getopt(int level, int name, void *value, std::size_t *len);

    ssize_t readv(const iovec *iov, void **desc, std::size_t count, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                  void *context);
    ssize_t writev(const iovec *iov, void **desc, std::size_t count, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                   void *context);
    ssize_t read(void *buffer, std::size_t len, void *desc, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                 void *context);
    ssize_t write(const void *buffer, std::size_t len, void *desc, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                  void *context);
    ssize_t inject_write(const void *buffer, std::size_t len, fi_addr_t peer, std::uint64_t address, std::uint64_t key);
    ssize_t readmsg(const fi_msg_rma *message, std::uint64_t flags);
    ssize_t writemsg(const fi_msg_rma *message, std::uint64_t flags);

private:
    enum class Desc { Needed, Optional, Unused };
    ssize_t transfer(Direction direction, void *buffer, std::size_t len, void *desc, std::uint64_t address, std::uint64_t key,
                     Desc need);
    ssize_t transfer_message(Direction direction, const fi_msg_rma *message);
    void complete(Direction direction, void *context, std::size_t len);

    bool needs_desc_;
    std::vector<struct fid *> bound_;
    Cq *completions_ = nullptr;
    Counter *reads_ = nullptr;
    Counter *writes_ = nullptr;
};

struct PassiveEndpoint final : fid_pep {
    using C = fid_pep;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_PEP; }
    explicit PassiveEndpoint(void *context);
    int close();
    int bind(struct fid *other, std::uint64_t flags);
    int getname(void *address, std::size_t *len);
    int listen();
    int reject(struct fid *handle, const void *data, std::size_t len);

private:
    std::vector<struct fid *> bound_;
};

struct SharedTx final : fid_stx {
    using C = fid_stx;
    static bool is_class(std::size_t fclass) { return fclass == FI_CLASS_STX_CTX; }
    explicit SharedTx(void *context);
    int close() { return objects().remove(&fid); }
};

} // namespace pin
