// What the host header keeps about the kernel that runs: operation counts, rounding and saturation mode, the memory of
// its arguments, the cascade, and how a mistake is reported. Standard library only; nothing of the AIE API.

#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <type_traits>

namespace npusim_host {

// Issues of the core's slots. `issued` is their sum; a turn of a loop that adds nothing to it is a turn of scalar code.
struct Counters {
  std::uint64_t loads, stores, vector, moves, turns, issued, cascade_in, cascade_out;
};
inline Counters counters{};
constexpr std::uint64_t no_turn = ~std::uint64_t(0);
inline std::uint64_t issued_at_turn = no_turn; // when the current turn began

constexpr unsigned issues(unsigned amount, unsigned per_issue) { return (amount + per_issue - 1) / per_issue; }
constexpr void count(std::uint64_t Counters::*slot, unsigned n) {
  if (std::is_constant_evaluated()) return;
  counters.*slot += n;
  counters.issued += n;
}
constexpr void vector_issues(unsigned n) { count(&Counters::vector, n); }
constexpr void move_issues(unsigned n) { count(&Counters::moves, n); }

// The current turn of a loop of the kernel's source is over (see loops_begin.hpp); the next one begins.
inline void end_of_turn() {
  if (counters.issued == issued_at_turn) ++counters.turns;
}
constexpr void turn() {
  if (std::is_constant_evaluated()) return;
  end_of_turn();
  issued_at_turn = counters.issued;
}

// The core's modes. The numbers are those of the core's control registers; floor and none are its reset values.
inline unsigned rounding = 0;
inline unsigned saturation = 0;

// ---- mistakes

inline char *report = nullptr; // where the worker wants the message; nullptr: standard error
constexpr unsigned report_size = 2048;

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char *format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  if (report)
    std::vsnprintf(report, report_size, format, arguments);
  else
    std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::_Exit(3);
}

using Where = std::source_location;

inline const char *base_name(const char *path) {
  const char *name = path;
  for (const char *c = path; *c; ++c)
    if (*c == '/') name = c + 1;
  return name;
}

// ---- memory

struct Region { // one argument of the running kernel
  std::uintptr_t begin, end;
  unsigned index;
};
constexpr unsigned max_arguments = 32;
constexpr std::uintptr_t guard_bytes = 4096; // either side of an argument: an access there is meant for it
inline Region regions[max_arguments];
inline unsigned region_count = 0;
inline const char *kernel = "?";

// Checks an access of the vector unit: bounds within the argument it points into, and alignment (0: any).
inline void check_access(const char *what, const void *pointer, unsigned bytes, unsigned align, const Where &where) {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  for (unsigned i = 0; i < region_count; ++i) {
    const Region &r = regions[i];
    if (at + guard_bytes < r.begin || at >= r.end + guard_bytes) continue;
    if (at < r.begin || at + bytes > r.end)
      fail("out of bounds: %s of %u bytes at byte %ld of argument %u, which has %ld bytes (%s:%u, kernel %s)", what,
           bytes, long(at - r.begin), r.index, long(r.end - r.begin), base_name(where.file_name()),
           unsigned(where.line()), kernel);
    if (align && at % align)
      fail("misaligned: %s of %u bytes at byte %ld of argument %u must be aligned to %u bytes (%s:%u, kernel %s)", what,
           bytes, long(at - r.begin), r.index, align, base_name(where.file_name()), unsigned(where.line()), kernel);
    return;
  }
  if (align && at % align)
    fail("misaligned: %s of %u bytes at an address that is not a multiple of %u (%s:%u, kernel %s)", what, bytes, align,
         base_name(where.file_name()), unsigned(where.line()), kernel);
}

inline void check_index(const char *what, unsigned index, unsigned size, const Where &where) {
  if (index >= size)
    fail("out of range: %s %u, there are %u (%s:%u, kernel %s)", what, index, size, base_name(where.file_name()),
         unsigned(where.line()), kernel);
}

// ---- cascade: bytes that the neighbour has sent, and those that go on to the next

inline const unsigned char *cascade_inbox = nullptr;
inline unsigned char *cascade_outbox = nullptr;
inline std::uint64_t cascade_available = 0, cascade_room = 0;
constexpr unsigned cascade_word = 64; // bytes

} // namespace npusim_host
