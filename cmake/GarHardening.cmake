# gar_harden(): what makes an error in memory harder to exploit, for everything that is compiled and linked in this folder and below
# it. These are options of folders and not of targets, so who uses the package or adds us with add_subdirectory() gets none of them.
# tests/install/hardening.sh reads what was built and demands each of them.
#
# libgar_c.so, and any shared library that somebody makes of ours, exports the C interface, whose headers say so, and none of the C++
# names.
#
# Sanitizers find the same errors at once, and their checks and those of _FORTIFY_SOURCE stand in each other's way. nvcc compiles
# kernels and the glue around them without them: there is nothing on the host's stack to protect.
function(_gar_add_flag_if_known flag)
  string(MAKE_C_IDENTIFIER "GAR_KNOWS${flag}" known)
  check_cxx_compiler_flag("-Werror ${flag}" ${known})
  if(${known})
    list(APPEND gar_hardening_flags ${flag})
    set(gar_hardening_flags ${gar_hardening_flags} PARENT_SCOPE)
  endif()
endfunction()

macro(gar_harden)
  set(GAR_IS_HARDENED OFF)
  if(GAR_HARDENING AND NOT GAR_SANITIZE)
    set(GAR_IS_HARDENED ON)
    include(CheckCXXCompilerFlag)
    set(gar_hardening_flags "")
    _gar_add_flag_if_known(-fstack-protector-strong)
    _gar_add_flag_if_known(-fstack-clash-protection)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
      _gar_add_flag_if_known(-fcf-protection)
    endif()
    # Programs get the addresses of all functions when they start, and then nothing can change them any more.
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${gar_hardening_flags};-fvisibility=hidden>"
                        "$<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>")
    add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
    # Not POSITION_INDEPENDENT_CODE, which asks for -fPIC in a library of objects: its precompiled header serves programs, too.
    add_compile_options(
      "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>>:-fPIE>")
    add_link_options("$<$<AND:$<LINK_LANGUAGE:C,CXX>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-pie>")
    # Level 3 knows sizes that are only computed when the program runs. Without optimisation there are no checks.
    set(gar_fortify_level 2)
    if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
       OR (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12))
      set(gar_fortify_level 3)
    endif()
    add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${gar_fortify_level}>")
  endif()
endmacro()
