// What a C++ function wants as arguments, as text that npusim.hostcc.signature reads, and how to call it with them.

#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "npusim_host/state.hpp"

struct bfloat16; // of aie_api; a source that does not include it cannot use it

namespace npusim_host {

constexpr unsigned slot_bytes = 8; // of a scalar argument

// The type as the compiler writes it: between "T = " and "]" or ";" in the name of this function.
template <typename T> void print_type() {
  const char *name = std::strstr(__PRETTY_FUNCTION__, "T = ");
  name = name ? name + 4 : "?";
  std::printf("%.*s", int(std::strcspn(name, ";]")), name);
}

// i, u, f, b (bfloat16), v (void) or x (anything else), and the size in bytes.
template <typename T> void print_element() {
  if constexpr (std::is_void_v<T>)
    std::printf("v0");
  else if constexpr (std::is_same_v<T, bfloat16>)
    std::printf("b2");
  else
    std::printf("%c%u",
                std::is_floating_point_v<T> ? 'f'
                : std::is_enum_v<T>         ? 'i'
                : !std::is_integral_v<T>    ? 'x'
                : std::is_signed_v<T>       ? 'i'
                                            : 'u',
                unsigned(sizeof(T)));
}

// "p": a pointer to what may be written, "c": to const, "s": a scalar; then its element, then its type in C++.
template <typename T> void print_argument() {
  if constexpr (std::is_pointer_v<T>) {
    using Element = std::remove_pointer_t<T>;
    std::printf(std::is_const_v<Element> ? "|c" : "|p");
    print_element<std::remove_cv_t<Element>>();
  } else {
    std::printf("|s");
    print_element<std::remove_cv_t<T>>();
  }
  std::printf(" ");
  print_type<T>();
}

template <typename T> T argument(const unsigned char *slot) {
  if constexpr (std::is_pointer_v<T>) {
    void *address;
    std::memcpy(&address, slot, sizeof address);
    return static_cast<T>(address);
  } else {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= slot_bytes, "a kernel takes pointers and scalars");
    std::remove_cv_t<T> value;
    std::memcpy(static_cast<void *>(&value), slot, sizeof value);
    return value;
  }
}

struct Kernel {
  const char *name;
  const void *address;
  void (*call)(const unsigned char *slots);
  void (*print_arguments)();
};

template <auto function> struct Described;
template <typename R, typename... Args, R (*function)(Args...)> struct Described<function> {
  template <std::size_t... I> static void call_with(const unsigned char *slots, std::index_sequence<I...>) {
    (void)slots;
    function(argument<Args>(slots + I * slot_bytes)...);
  }
  static void call(const unsigned char *slots) { call_with(slots, std::index_sequence_for<Args...>()); }
  static void print_arguments() { (print_argument<Args>(), ...); }
  static Kernel make(const char *name) {
    return {name, reinterpret_cast<const void *>(function), &call, &print_arguments};
  }
};

} // namespace npusim_host
