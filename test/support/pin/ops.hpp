// SPDX-License-Identifier: BSD-2-Clause
// How member functions fill libfabric's operation tables. Each call is checked first: its fid must be a live object of pin's
// own. What the calls do is in the files of the objects.
#pragma once

#include "objects.hpp"

#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace pin {

template <class R, class... A>
using Call = R (*)(A...);

// Fills any slot with a function that answers -FI_ENOSYS.
struct Enosys {
    template <class R, class... A>
    constexpr operator Call<R, A...>() const noexcept
    {
        return [](A...) -> R {
            if constexpr (std::is_pointer_v<R>)
                return nullptr;
            else
                return static_cast<R>(-FI_ENOSYS);
        };
    }
};
inline constexpr Enosys enosys;

inline fid *as_fid(fid *f) noexcept { return f; }
template <class F>
fid *as_fid(F *f) noexcept
{
    return f ? &f->fid : nullptr;
}

// Each type of object names the C structure it begins with (`using C = fid_mr`) and tells its classes (`is_class`).
template <class T>
T *object_of(fid *f) noexcept
{
    return static_cast<T *>(reinterpret_cast<typename T::C *>(f));
}

// The live object behind a fid that pin was handed, or nullptr: then it is counted as foreign, or as a call after its close.
template <class T, class F>
T *own(F *f) noexcept
{
    return objects().is_mine(as_fid(f), &T::is_class) ? object_of<T>(as_fid(f)) : nullptr;
}

// No exception passes the C boundary.
template <class R, class F>
R guarded(F f) noexcept
{
    try {
        return static_cast<R>(f());
    } catch (const std::system_error &error) {
        return static_cast<R>(-error.code().value());
    } catch (const std::bad_alloc &) {
        return static_cast<R>(-FI_ENOMEM);
    } catch (...) {
        return static_cast<R>(-FI_EOTHER);
    }
}

template <auto M>
struct Op;

template <class T, class R, class... A, R (T::*M)(A...)>
struct Op<M> {
    template <class F>
    constexpr operator Call<R, F *, A...>() const noexcept
    {
        return [](F *f, A... arguments) -> R {
            T *self = own<T>(f);
            if (!self)
                return static_cast<R>(-FI_EINVAL);
            return guarded<R>([&] { return (self->*M)(arguments...); });
        };
    }
};

// op<&Domain::cq_open> fills the slot cq_open.
template <auto M>
inline constexpr Op<M> op;

// Fills `close` for a type whose close() ends with objects().remove(): counts a second close and does nothing.
template <class T>
int close_op(fid *f) noexcept
{
    if (objects().is_closed(f))
        return -FI_EINVAL;
    T *self = own<T>(f);
    return self ? guarded<int>([&] { return self->close(); }) : -FI_EINVAL;
}

// Makes an object, enters it in the registry below its parent, and only then sets the out-parameter.
template <class T, class Out, class... A>
int make(Out **out, fid *parent, A &&...arguments)
{
    auto *object = new T(std::forward<A>(arguments)...);
    try {
        objects().add(&object->fid, parent, [](fid *f) { delete object_of<T>(f); });
    } catch (...) {
        delete object;
        throw;
    }
    *out = object;
    return 0;
}

} // namespace pin
