// SPDX-License-Identifier: BSD-2-Clause
// cache/list.hpp: the order of things in a list.
#include "cache/list.hpp"

#include <criterion/criterion.h>

using namespace regcache;

namespace {

struct Thing {
    ListNode<Thing> node;
};

using Things = List<Thing, &Thing::node>;

} // namespace

Test(cache_list, gives_the_first_first)
{
    Things list;
    Thing a, b, c;
    cr_expect(list.is_empty());
    cr_expect(list.pop_front() == nullptr);
    list.push_back(a);
    list.push_back(b);
    list.push_back(c);
    cr_expect(list.first() == &a);
    cr_expect(list.pop_front() == &a);
    cr_expect(list.pop_front() == &b);
    cr_expect(list.pop_front() == &c);
    cr_expect(list.is_empty());
}

Test(cache_list, loses_its_first_middle_and_last)
{
    Things list;
    Thing a, b, c, d, e;
    for (Thing *each : {&a, &b, &c, &d, &e})
        list.push_back(*each);
    list.erase(c);
    list.erase(a);
    list.erase(e);
    list.push_back(a);
    cr_expect(list.pop_front() == &b);
    cr_expect(list.pop_front() == &d);
    cr_expect(list.pop_front() == &a);
    cr_expect(list.is_empty());
}

Test(cache_list, takes_another_list_behind_its_own)
{
    Things list, other;
    Thing a, b, c;
    list.push_back(a);
    other.push_back(b);
    other.push_back(c);
    list.take(other);
    cr_expect(other.is_empty());
    cr_expect(list.pop_front() == &a);
    cr_expect(list.pop_front() == &b);
    cr_expect(list.pop_front() == &c);
    list.take(other);
    cr_expect(list.is_empty());
}
