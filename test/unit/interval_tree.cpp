// SPDX-License-Identifier: BSD-2-Clause
// index/interval_tree.hpp: what is found, against a model that looks at everything.
#include "index/interval_tree.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;

namespace {

struct Item {
    Range range;
    IntervalNode<Item> in_index;
};

using Tree = IntervalTree<Item>;

std::size_t count_overlaps(const Tree &tree, Range range)
{
    std::size_t count = 0;
    tree.each_overlap(range, [&](Item &) { ++count; });
    return count;
}

auto any = [](const Item &) { return true; };

// The tree, and all that is in it.
class Both {
public:
    void insert(Range range)
    {
        items_.push_back(std::make_unique<Item>());
        items_.back()->range = range;
        tree.insert(*items_.back());
    }
    void erase(std::size_t which)
    {
        tree.erase(*items_[which]);
        cr_assert(items_[which]->in_index.left == nullptr && items_[which]->in_index.right == nullptr);
        std::swap(items_[which], items_.back());
        items_.pop_back();
    }
    std::size_t size() const { return items_.size(); }

    void check(Range asked) const
    {
        std::vector<const Item *> expected, visited;
        bool is_contained = false;
        for (const auto &item : items_) {
            if (item->range.overlaps(asked))
                expected.push_back(item.get());
            is_contained |= item->range.contains(asked);
        }
        tree.each_overlap(asked, [&](Item &item) { visited.push_back(&item); });
        cr_assert(std::is_sorted(visited.begin(), visited.end(), [](const Item *a, const Item *b) {
            return a->range.begin < b->range.begin;
        }));
        std::sort(expected.begin(), expected.end());
        std::sort(visited.begin(), visited.end());
        cr_assert(visited == expected);

        const Item *const some = tree.any_overlap(asked);
        cr_assert((some != nullptr) == !expected.empty());
        cr_assert(!some || some->range.overlaps(asked));

        const Item *const found = tree.find(asked, any);
        cr_assert((found != nullptr) == is_contained);
        cr_assert(!found || found->range.contains(asked));
        cr_assert(tree.is_empty() == items_.empty());
    }
    // Every item is found although all others are refused.
    void check_each() const
    {
        for (const auto &wanted : items_)
            cr_assert(tree.find(wanted->range, [&](const Item &item) { return &item == wanted.get(); }) == wanted.get());
    }

    Tree tree;

private:
    std::vector<std::unique_ptr<Item>> items_;
};

void run_random(unsigned seed, std::uintptr_t addresses, std::uintptr_t longest, std::size_t most)
{
    std::printf("seed %u, %zu addresses, length up to %zu, %zu items\n", seed, addresses, longest, most);
    std::mt19937 random(seed);
    const auto some_range = [&] {
        const std::uintptr_t begin = random() % addresses;
        return Range{begin, begin + 1 + random() % longest};
    };
    Both both;
    for (int turn = 0; turn < 20'000; ++turn) {
        if (both.size() < most && (both.size() == 0 || random() % 5 < 3))
            both.insert(some_range());
        else
            both.erase(random() % both.size());
        both.check(some_range());
        if (turn % 256 == 0)
            both.check_each();
    }
    while (both.size() != 0)
        both.erase(random() % both.size());
    cr_assert(both.tree.is_empty());
}

} // namespace

Test(interval_tree, is_empty_at_first)
{
    const Tree tree;
    cr_expect(tree.is_empty());
    cr_expect(tree.any_overlap(Range::everything()) == nullptr);
    cr_expect(tree.find({1, 2}, any) == nullptr);
    cr_expect(count_overlaps(tree, Range::everything()) == 0);
}

Test(interval_tree, ranges_that_only_touch_do_not_overlap)
{
    Tree tree;
    Item item{{10, 20}, {}};
    tree.insert(item);
    cr_expect(tree.any_overlap({0, 10}) == nullptr);
    cr_expect(tree.any_overlap({20, 30}) == nullptr);
    cr_expect(tree.any_overlap({19, 30}) == &item);
    cr_expect(tree.any_overlap({0, 11}) == &item);
    cr_expect(tree.find({10, 20}, any) == &item);
    cr_expect(tree.find({9, 20}, any) == nullptr);
    cr_expect(tree.find({10, 21}, any) == nullptr);
}

Test(interval_tree, finds_a_wide_item_behind_nearer_ones_that_are_too_short)
{
    Tree tree;
    Item wide{{0, 100}, {}}, near{{40, 60}, {}}, nearer{{44, 46}, {}};
    for (Item *each : {&near, &wide, &nearer})
        tree.insert(*each);
    cr_expect(tree.find({45, 70}, any) == &wide);
}

Test(interval_tree, finds_what_the_predicate_wants_behind_what_it_refuses)
{
    Tree tree;
    std::vector<Item> items(100);
    for (std::uintptr_t i = 0; i < items.size(); ++i) {
        items[i].range = {i, 1000 - i};
        tree.insert(items[i]);
    }
    for (const Item &wanted : items)
        cr_expect(tree.find({400, 500}, [&](const Item &item) { return &item == &wanted; }) == &wanted);
}

Test(interval_tree, keeps_items_of_the_same_range_apart)
{
    Tree tree;
    std::vector<Item> items(64);
    for (Item &item : items) {
        item.range = {100, 200};
        tree.insert(item);
    }
    for (std::size_t left = items.size(); left > 0; --left) {
        cr_expect(count_overlaps(tree, {150, 151}) == left);
        tree.erase(items[left * 37 % items.size()]);
    }
    cr_expect(tree.is_empty());
}

Test(interval_tree, reaches_the_ends_of_the_address_space)
{
    Tree tree;
    Item first{{0, 1}, {}}, last{{UINTPTR_MAX - 1, UINTPTR_MAX}, {}};
    tree.insert(first);
    tree.insert(last);
    cr_expect(tree.any_overlap({0, 1}) == &first);
    cr_expect(tree.any_overlap({UINTPTR_MAX - 1, UINTPTR_MAX}) == &last);
    cr_expect(count_overlaps(tree, Range::everything()) == 2);
}

// Degenerate into a list it must not: a million steps down would overflow the stack.
Test(interval_tree, takes_a_million_in_the_order_of_their_addresses)
{
    std::vector<Item> items(1'000'000);
    Tree tree;
    for (std::uintptr_t i = 0; i < items.size(); ++i) {
        items[i].range = {2 * i, 2 * i + 2};
        tree.insert(items[i]);
    }
    for (std::uintptr_t i = 0; i < items.size(); i += 997)
        cr_assert(tree.find({2 * i, 2 * i + 1}, any) == &items[i]);
    for (Item &item : items)
        tree.erase(item);
    cr_expect(tree.is_empty());
}

Test(interval_tree, agrees_with_a_model_where_much_overlaps)
{
    run_random(std::random_device{}(), 1000, 1000, 200);
}

Test(interval_tree, agrees_with_a_model_where_little_overlaps)
{
    run_random(std::random_device{}(), 100'000, 100, 300);
}

Test(interval_tree, agrees_with_a_model_where_many_are_the_same)
{
    run_random(std::random_device{}(), 8, 4, 100);
}
