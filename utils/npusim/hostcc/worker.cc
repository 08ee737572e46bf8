// The program that runs a kernel for the simulated NPU, in a process of its own. npusim.hostcc.worker is its other
// side.
//
// Memory shared with the parent, in this order: a Control block (control_bytes), the cascade's inbox and outbox
// (cascade_bytes each), and one area for each argument, whole pages, given on the command line. In this process guard
// pages that nobody may touch lie around every area. A call is one byte on the pipe; the answer is one byte.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "npusim_host/signature.hpp"

namespace npusim_host {

constexpr std::size_t control_bytes = 65536, cascade_bytes = 1 << 20;
constexpr std::uintptr_t guard_around = 256 * 1024; // bytes either side of an area; whole pages on every system
static_assert(guard_around >= guard_bytes);

struct Argument {             // written by the parent for each call
  std::uint64_t area;         // index of its area, or scalar
  std::uint64_t offset, size; // bytes in the area
  unsigned char value[slot_bytes];
};
constexpr std::uint64_t scalar = ~std::uint64_t(0);

struct Control {
  std::uint32_t kernel, arguments, timeout_ms, unused;
  std::uint64_t cascade_available, cascade_sent, program_counter;
  Counters counters;
  Argument argument[max_arguments];
  char report[report_size];
};
static_assert(sizeof(Control) <= control_bytes);

Control *control = nullptr;
char *area_begin[max_arguments];
std::size_t area_size[max_arguments];
unsigned area_count = 0;

// ---- what goes wrong

std::uint64_t interrupted_at(void *context) {
#if defined(__x86_64__) && defined(__linux__)
  return std::uint64_t(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__) && defined(__linux__)
  return std::uint64_t(static_cast<ucontext_t *>(context)->uc_mcontext.pc);
#else
  (void)context;
  return 0;
#endif
}

extern "C" void npusim_on_signal(int number, siginfo_t *info, void *context) {
  Dl_info self;
  const auto pc = interrupted_at(context);
  if (pc && dladdr(reinterpret_cast<void *>(pc), &self) && self.dli_fbase)
    control->program_counter = pc - reinterpret_cast<std::uint64_t>(self.dli_fbase);
  if (number == SIGALRM)
    fail("endless loop? kernel %s did not return within %.3g s", kernel, control->timeout_ms / 1000.0);
  if (number == SIGFPE) fail("kernel %s divides an integer by zero", kernel);
  if (number == SIGABRT) fail("kernel %s aborted", kernel);
  if (number == SIGILL)
    fail("kernel %s executes what is no instruction (a function that must return a value, and does not?)", kernel);
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (unsigned i = 0; i < region_count; ++i) {
    const Region &r = regions[i];
    if (at + guard_around >= r.begin && at < r.end + guard_around)
      fail("out of bounds: kernel %s accesses byte %ld of argument %u, which has %ld bytes", kernel, long(at - r.begin),
           r.index, long(r.end - r.begin));
  }
  fail("kernel %s accesses memory that is none of its arguments (address 0x%lx)", kernel,
       static_cast<unsigned long>(at));
}

void catch_signals() {
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_sigaction = npusim_on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) sigaction(number, &action, nullptr);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// ---- memory

void *map_shared(int file, void *at, std::size_t bytes, std::size_t offset) {
  void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), file, off_t(offset));
  if (got == MAP_FAILED) {
    std::perror("mmap");
    std::_Exit(4);
  }
  return got;
}

void map_areas(int file, int count, char **sizes) {
  std::size_t offset = control_bytes + 2 * cascade_bytes;
  control = static_cast<Control *>(map_shared(file, nullptr, control_bytes, 0));
  cascade_inbox = static_cast<unsigned char *>(map_shared(file, nullptr, cascade_bytes, control_bytes));
  cascade_outbox =
      static_cast<unsigned char *>(map_shared(file, nullptr, cascade_bytes, control_bytes + cascade_bytes));
  for (int i = 0; i < count; ++i) {
    const std::size_t bytes = std::strtoull(sizes[i], nullptr, 10);
    char *reserved =
        static_cast<char *>(mmap(nullptr, bytes + 2 * guard_around, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    area_begin[i] = static_cast<char *>(map_shared(file, reserved + guard_around, bytes, offset));
    area_size[i] = bytes;
    offset += bytes;
  }
  area_count = unsigned(count);
}

// The parent fills what lies around an argument in its area with this; a kernel that changes it wrote out of bounds.
constexpr unsigned char canary = 0xa5;

void check_canaries(const Argument &a, unsigned index, std::size_t begin, std::size_t end) {
  const auto *area = reinterpret_cast<const unsigned char *>(area_begin[a.area]);
  unsigned char changed = 0;
  for (std::size_t at = begin; at < end; ++at) changed |= area[at] ^ canary;
  if (!changed) return;
  std::size_t at = begin;
  while (area[at] == canary) ++at;
  fail("out of bounds: kernel %s writes byte %ld of argument %u, which has %ld bytes", kernel,
       long(at) - long(a.offset), index, long(a.size));
}

void check_canaries() {
  for (unsigned i = 0; i < control->arguments; ++i) {
    const Argument &a = control->argument[i];
    if (a.area == scalar) continue;
    check_canaries(a, i, 0, a.offset);
    check_canaries(a, i, a.offset + a.size, area_size[a.area]);
  }
}

// ---- calls

void run_once(const Kernel &chosen) {
  unsigned char slots[max_arguments * slot_bytes];
  region_count = 0;
  for (unsigned i = 0; i < control->arguments; ++i) {
    const Argument &a = control->argument[i];
    unsigned char *slot = slots + i * slot_bytes;
    if (a.area == scalar) {
      std::memcpy(slot, a.value, slot_bytes);
      continue;
    }
    char *address = area_begin[a.area] + a.offset;
    std::memcpy(slot, &address, sizeof address);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    regions[region_count++] = {begin, begin + a.size, i};
  }
  kernel = chosen.name;
  counters = {};
  issued_at_turn = no_turn;
  rounding = saturation = 0; // as after the core's reset: a kernel must not rely on what another one has set
  cascade_available = control->cascade_available;
  cascade_room = cascade_bytes;
  itimerval timer{};
  timer.it_value.tv_sec = control->timeout_ms / 1000;
  timer.it_value.tv_usec = control->timeout_ms % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
  chosen.call(slots);
  timer.it_value = {};
  setitimer(ITIMER_REAL, &timer, nullptr);
  end_of_turn();
  control->counters = counters;
  control->cascade_sent = counters.cascade_out;
  check_canaries();
}

// One line a kernel: name, C if its symbol is what the design's linker looks for, and its arguments.
int describe(const Kernel *kernels, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const bool plain = dlsym(RTLD_DEFAULT, kernels[i].name) == kernels[i].address;
    std::printf("%s|%s", kernels[i].name, plain ? "C" : "C++");
    kernels[i].print_arguments();
    std::printf("\n");
  }
  return 0;
}

// Arguments: the shared memory's and the two pipes' file descriptors, then the bytes of each area; or none, to
// describe.
int worker_main(const Kernel *kernels, unsigned count, int argc, char **argv) {
  if (argc < 4) return describe(kernels, count);
  const int file = std::atoi(argv[1]), in = std::atoi(argv[2]), out = std::atoi(argv[3]);
  map_areas(file, argc - 4, argv + 4);
  report = control->report;
  catch_signals();
  char byte;
  for (;;) {
    const auto got = read(in, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return 0; // the parent is gone
    run_once(kernels[control->kernel]);
    if (write(out, &byte, 1) != 1) return 0;
  }
}

} // namespace npusim_host

// Defined beside the kernel's source: see npusim.hostcc.build.
extern const npusim_host::Kernel npusim_kernels[];
extern const unsigned npusim_kernel_count;

int main(int argc, char **argv) { return npusim_host::worker_main(npusim_kernels, npusim_kernel_count, argc, argv); }
