// SPDX-License-Identifier: BSD-2-Clause
// In which order things stand: a list through the things' own nodes. Allocates nothing and locks nothing.
#pragma once

namespace regcache {

template <class T>
struct ListNode {
    T *previous = nullptr;
    T *next = nullptr;
};

// A thing is in at most one list through the same node.
template <class T, ListNode<T> T::*Node>
class List {
public:
    bool is_empty() const noexcept { return first_ == nullptr; }
    T *first() const noexcept { return first_; }

    void push_back(T &thing) noexcept
    {
        (thing.*Node) = {last_, nullptr};
        (last_ ? (last_->*Node).next : first_) = &thing;
        last_ = &thing;
    }

    void erase(T &thing) noexcept
    {
        const ListNode<T> node = thing.*Node;
        (node.previous ? (node.previous->*Node).next : first_) = node.next;
        (node.next ? (node.next->*Node).previous : last_) = node.previous;
        thing.*Node = {};
    }

    T *pop_front() noexcept
    {
        T *const thing = first_;
        if (thing)
            erase(*thing);
        return thing;
    }

    // Takes everything that stands in `other`, behind what is here.
    void take(List &other) noexcept
    {
        while (T *thing = other.pop_front())
            push_back(*thing);
    }

private:
    T *first_ = nullptr;
    T *last_ = nullptr;
};

} // namespace regcache
