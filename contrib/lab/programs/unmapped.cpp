// SPDX-License-Identifier: BSD-2-Clause
// Registers a buffer through a provider, closes the region, and later unmaps the buffer, a step for each line of its input; it
// never calls libfabric in between. Whoever runs it looks at what the device still has: a cached registration after the
// first step, none after the second.
//
//   unmapped [-p PROVIDER] [-n NODE] [-s BYTES]
//
// Prints "closed", then "unmapped"; ends with its input.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void must(int code, const char *what)
{
    if (code == 0)
        return;
    std::fprintf(stderr, "unmapped: %s: %s\n", what, fi_strerror(-code));
    std::exit(2);
}

void say_and_wait(const char *step)
{
    std::puts(step);
    std::fflush(stdout);
    char line[16];
    if (!std::fgets(line, sizeof line, stdin))
        std::exit(2);
}

} // namespace

int main(int argc, char **argv)
{
    const char *provider = "verbs", *node = "10.0.2.15";
    std::size_t bytes = 1 << 20;
    for (int got; (got = getopt(argc, argv, "p:n:s:")) != -1;) {
        if (got == 'p')
            provider = optarg;
        else if (got == 'n')
            node = optarg;
        else if (got == 's')
            bytes = std::strtoul(optarg, nullptr, 10);
        else
            return 2;
    }
    alarm(300);
    fi_info *hints = fi_allocinfo(), *info = nullptr;
    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup(provider);
    must(fi_getinfo(FI_VERSION(1, 9), node, nullptr, FI_SOURCE, hints, &info), "fi_getinfo");
    fi_freeinfo(hints);
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");

    void *const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fid_mr *region = nullptr;
    must(fi_mr_reg(domain, pages, bytes, FI_SEND | FI_RECV, 0, 0, 0, &region, nullptr), "fi_mr_reg");
    must(fi_close(&region->fid), "fi_close");
    say_and_wait("closed");
    munmap(pages, bytes);
    say_and_wait("unmapped");

    must(fi_close(&domain->fid), "fi_close of the domain");
    must(fi_close(&fabric->fid), "fi_close of the fabric");
    fi_freeinfo(info);
    return 0;
}
