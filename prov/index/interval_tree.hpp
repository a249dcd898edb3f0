// SPDX-License-Identifier: BSD-2-Clause
// Which of a set of ranges contain, or touch, a given one: a treap over the items' own nodes, ordered by begin, in which
// each node knows the largest end below it. Allocates nothing and locks nothing.
#pragma once

#include "sys/range.hpp"

#include <cstddef>
#include <cstdint>

namespace regcache {

template <class Item>
struct IntervalNode {
    Item *left = nullptr;
    Item *right = nullptr;
    std::uintptr_t max_end = 0; // of this item and all below it
    std::uint32_t priority = 0; // no child has a higher one
};

// Item has `Range range`, which doesn't change while it is in the tree, and `IntervalNode<Item> in_index`. Any number of
// items may have the same range. Expected cost: log n for insert and erase, log n + hits for each_overlap. find() is
// log n where the predicate takes what it sees; each item that overlaps the request and is refused adds to it.
template <class Item>
class IntervalTree {
public:
    bool is_empty() const noexcept { return root_ == nullptr; }

    void insert(Item &item) noexcept
    {
        IntervalNode<Item> &node = item.in_index;
        node = {};
        node.priority = next_priority();
        Item **link = &root_;
        // All on the way down to the place will have the item below them.
        while (*link && priority(*link) >= node.priority) {
            raise(*link, item.range.end);
            link = before(item, **link) ? &(*link)->in_index.left : &(*link)->in_index.right;
        }
        split(*link, item, node.left, node.right);
        *link = &item;
        renew(item);
    }

    // The item must be in the tree.
    void erase(Item &item) noexcept { erase(root_, item); }

    // An item that contains `range` and that `is_wanted` accepts, or nullptr.
    template <class Predicate>
    Item *find(const Range &range, Predicate &&is_wanted) const noexcept
    {
        return find(root_, range, is_wanted);
    }

    // Calls `visit(item)` for every item that overlaps `range`. The tree must not change meanwhile.
    template <class Visitor>
    void each_overlap(const Range &range, Visitor &&visit) const noexcept
    {
        each_overlap(root_, range, visit);
    }

    // Some item that overlaps `range`, or nullptr: for callers that erase what they get and ask again.
    Item *any_overlap(const Range &range) const noexcept
    {
        Item *at = root_;
        while (at) {
            if (at->range.overlaps(range))
                return at;
            // If the left part reaches beyond the range's begin but has no overlap, then everything in it that does so
            // begins at or behind the range's end, and so does everything on the right.
            Item *const left = at->in_index.left;
            at = left && left->in_index.max_end > range.begin ? left : at->in_index.right;
        }
        return nullptr;
    }

private:
    static std::uint32_t priority(const Item *item) noexcept { return item->in_index.priority; }

    // A total order, so that an item is found again among others with the same range.
    static bool before(const Item &a, const Item &b) noexcept
    {
        if (a.range.begin != b.range.begin)
            return a.range.begin < b.range.begin;
        return reinterpret_cast<std::uintptr_t>(&a) < reinterpret_cast<std::uintptr_t>(&b);
    }

    static void raise(Item *item, std::uintptr_t end) noexcept
    {
        if (item->in_index.max_end < end)
            item->in_index.max_end = end;
    }

    static void renew(Item &item) noexcept
    {
        item.in_index.max_end = item.range.end;
        if (const Item *left = item.in_index.left)
            raise(&item, left->in_index.max_end);
        if (const Item *right = item.in_index.right)
            raise(&item, right->in_index.max_end);
    }

    // Divides the tree `from` into what stands before `item` and what stands behind it.
    static void split(Item *from, const Item &item, Item *&lower, Item *&upper) noexcept
    {
        if (!from) {
            lower = upper = nullptr;
        } else if (before(item, *from)) {
            upper = from;
            split(from->in_index.left, item, lower, from->in_index.left);
            renew(*from);
        } else {
            lower = from;
            split(from->in_index.right, item, from->in_index.right, upper);
            renew(*from);
        }
    }

    static Item *join(Item *lower, Item *upper) noexcept
    {
        if (!lower || !upper)
            return lower ? lower : upper;
        if (priority(lower) >= priority(upper)) {
            lower->in_index.right = join(lower->in_index.right, upper);
            renew(*lower);
            return lower;
        }
        upper->in_index.left = join(lower, upper->in_index.left);
        renew(*upper);
        return upper;
    }

    static void erase(Item *&from, Item &item) noexcept
    {
        if (from == &item) {
            from = join(item.in_index.left, item.in_index.right);
            item.in_index = {};
            return;
        }
        erase(before(item, *from) ? from->in_index.left : from->in_index.right, item);
        renew(*from);
    }

    template <class Predicate>
    static Item *find(Item *at, const Range &range, Predicate &is_wanted) noexcept
    {
        while (at && at->in_index.max_end >= range.end) {
            if (at->range.begin > range.begin) {
                at = at->in_index.left;
                continue;
            }
            if (at->range.contains(range) && is_wanted(*at))
                return at;
            // The nearest begin first: it is the likeliest to be asked for again.
            if (Item *found = find(at->in_index.right, range, is_wanted))
                return found;
            at = at->in_index.left;
        }
        return nullptr;
    }

    template <class Visitor>
    static void each_overlap(Item *at, const Range &range, Visitor &visit) noexcept
    {
        while (at && at->in_index.max_end > range.begin) {
            each_overlap(at->in_index.left, range, visit);
            if (at->range.begin >= range.end)
                return;
            if (at->range.overlaps(range))
                visit(*at);
            at = at->in_index.right;
        }
    }

    // xorshift: the shape of the tree must not follow from the order of the addresses; nothing else depends on it.
    std::uint32_t next_priority() noexcept
    {
        seed_ ^= seed_ << 13;
        seed_ ^= seed_ >> 17;
        seed_ ^= seed_ << 5;
        return seed_;
    }

    Item *root_ = nullptr;
    std::uint32_t seed_ = 2463534242u;
};

} // namespace regcache
