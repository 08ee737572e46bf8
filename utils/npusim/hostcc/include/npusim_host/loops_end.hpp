// See loops_begin.hpp.

#undef for
#undef while
