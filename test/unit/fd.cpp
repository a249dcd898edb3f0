// SPDX-License-Identifier: BSD-2-Clause
// sys/fd.hpp: a descriptor is closed once, by its owner.
#include "sys/fd.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <criterion/criterion.h>

using namespace regcache;

namespace {

bool is_open(int number)
{
    return fcntl(number, F_GETFD) >= 0;
}

} // namespace

Test(fd, is_closed_with_its_owner)
{
    int number = -1;
    {
        const Fd fd(eventfd(0, 0));
        cr_assert(fd);
        number = fd.number();
        cr_expect(is_open(number));
    }
    cr_expect(!is_open(number));
}

Test(fd, without_descriptor_is_false)
{
    Fd none, failed(-1);
    cr_expect(!none && !failed);
    none.close();
}

Test(fd, is_closed_once)
{
    Fd fd(eventfd(0, 0));
    const int number = fd.number();
    fd.close();
    cr_expect(!fd && !is_open(number));
    const Fd same(eventfd(0, 0)); // gets the number again
    cr_assert(same.number() == number);
    fd.close();
    cr_expect(is_open(number));
}

Test(fd, moves_to_one_owner)
{
    Fd first(eventfd(0, 0));
    const int number = first.number();
    Fd second(std::move(first));
    cr_expect(second.number() == number && is_open(number));
    {
        Fd third;
        third = std::move(second);
        cr_expect(third.number() == number);
    }
    cr_expect(!is_open(number));
}
