// SPDX-License-Identifier: BSD-2-Clause
// How a member function becomes a slot of a libfabric operation table, and where exceptions stop.
#pragma once

#include "sys/error.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <new>
#include <system_error>
#include <type_traits>

namespace regcache {

// What a C caller gets for an exception.
inline int code_of_exception() noexcept
{
    try {
        throw;
    } catch (const Error &error) {
        return -error.code();
    } catch (const std::bad_alloc &) {
        return -FI_ENOMEM;
    } catch (const std::system_error &error) {
        return -error.code().value();
    } catch (...) {
        return -FI_EOTHER;
    }
}

namespace detail {

// The way back from the C object to ours: all of ours begin with the C object.
template <class Object, class Fid>
Object *object_of(Fid *fid) noexcept
{
    if constexpr (std::is_same_v<Fid, struct fid>)
        return static_cast<Object *>(reinterpret_cast<typename Object::C *>(fid));
    else
        return static_cast<Object *>(fid);
}

template <auto Method>
struct Op;

template <class Object, class... Arguments, int (Object::*Method)(Arguments...)>
struct Op<Method> {
    template <class Fid>
    static int call(Fid *fid, Arguments... arguments) noexcept
    {
        try {
            return (object_of<Object>(fid)->*Method)(arguments...);
        } catch (...) {
            return code_of_exception();
        }
    }
    template <class Fid>
    using Slot = int (*)(Fid *, Arguments...);
    template <class Fid>
    constexpr operator Slot<Fid>() const noexcept
    {
        return &call<Fid>;
    }
};

} // namespace detail

// op<&Domain::bind> fits every slot whose first argument is a struct fid or the C object that Domain begins with, and
// whose other arguments are the method's. Any other slot doesn't compile.
template <auto Method>
inline constexpr detail::Op<Method> op{};

// Fits every slot: -FI_ENOSYS, which callers of optional operations expect. No slot is left empty.
struct Enosys {
    template <class... Arguments>
    using Slot = int (*)(Arguments...);
    template <class... Arguments>
    constexpr operator Slot<Arguments...>() const noexcept
    {
        return [](Arguments...) noexcept -> int { return -FI_ENOSYS; };
    }
};
inline constexpr Enosys enosys{};

} // namespace regcache
