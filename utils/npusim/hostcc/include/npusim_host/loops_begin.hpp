// From here to loops_end.hpp each turn of a loop is counted: scalar code has no other mark that a header could count.
// The keywords stay what they are: a loop's body becomes the else of an if that counts. (Only `while` with a declaration as its
// condition does not survive this.)

#include "npusim_host/state.hpp"

#define for(...) for (__VA_ARGS__) if (::npusim_host::turn(), false) {} else
#define while(...) while (::npusim_host::turn(), (__VA_ARGS__))
