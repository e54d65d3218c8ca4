// What every other header begins with: GenAllReduce is written in C++20.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error \
    "GenAllReduce needs C++20: compile with -std=c++20 (CMake: target_compile_features(NAME PRIVATE cxx_std_20)); gar/gar.h is for C"
#endif
