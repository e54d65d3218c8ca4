# GPUs: gar_add_cuda() makes the libraries gar_cuda (gar::cuda) and, where NCCL is installed, gar_nccl (gar::nccl), and
# sets GAR_HAS_CUDA and GAR_HAS_NCCL.
macro(gar_add_cuda)
  set(GAR_HAS_CUDA OFF)
  set(GAR_HAS_NCCL OFF)
  if(GAR_WITH_CUDA AND GAR_SANITIZE)
    message(STATUS "CUDA: left out, because the sanitizers and the CUDA driver do not get along")
  elseif(GAR_WITH_CUDA)
    find_program(GAR_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(GAR_NVCC)
    set(gar_no_cuda "")
    if(NOT GAR_NVCC)
      set(gar_no_cuda "there is no nvcc on the PATH or in /usr/local/cuda/bin")
    else()
      execute_process(COMMAND ${GAR_NVCC} --version OUTPUT_VARIABLE gar_nvcc_words ERROR_QUIET)
      string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" gar_nvcc_words "${gar_nvcc_words}")
      if(NOT CMAKE_MATCH_1 OR CMAKE_MATCH_1 VERSION_LESS 12.5)
        set(gar_no_cuda "${GAR_NVCC} is of CUDA ${CMAKE_MATCH_1}, and 12.5 or later is needed")
      endif()
    endif()
    if(NOT gar_no_cuda)
      set(GAR_HAS_CUDA ON)
    elseif(GAR_WITH_CUDA STREQUAL "AUTO")
      message(STATUS "CUDA: ${gar_no_cuda}; built without GPUs")
    else()
      message(FATAL_ERROR "GAR_WITH_CUDA=${GAR_WITH_CUDA}, but ${gar_no_cuda}")
    endif()
  endif()
  if(GAR_HAS_CUDA)
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${GAR_NVCC} CACHE FILEPATH "CUDA compiler")
    endif()
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      # Machine code for A100 and H100/H200, and PTX that drivers compile for what comes later.
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPUs that kernels are compiled for")
    endif()
    if(PROJECT_IS_TOP_LEVEL AND GAR_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${GAR_CCACHE})
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    file(GLOB gar_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/transports/cuda/*.cpp
         ${PROJECT_SOURCE_DIR}/src/runtime/transports/cuda/*.cu)
    add_library(gar_cuda STATIC ${gar_cuda_sources})
    add_library(gar::cuda ALIAS gar_cuda)
    set_target_properties(gar_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME cuda)
    target_include_directories(gar_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(gar_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    # By path, so that users of the package need no module to find it.
    target_link_libraries(
      gar_cuda
      PUBLIC gar_runtime ${CUDA_cudart_static_LIBRARY} ${CMAKE_DL_LIBS} rt
      PRIVATE $<BUILD_INTERFACE:gar_fmt>)
    # nvcc does not know all of our warnings.
    target_compile_options(
      gar_cuda
      PRIVATE $<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:gar_warnings,INTERFACE_COMPILE_OPTIONS>>
              $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${GAR_WERROR}>>:-Werror=all-warnings>)
    install(TARGETS gar_cuda EXPORT gar-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

    find_path(GAR_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(GAR_NCCL_INCLUDE_DIR)
    if(GAR_NCCL_INCLUDE_DIR)
      set(GAR_HAS_NCCL ON)
      file(GLOB gar_nccl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/transports/nccl/*.cpp)
      add_library(gar_nccl STATIC ${gar_nccl_sources})
      add_library(gar::nccl ALIAS gar_nccl)
      find_library(GAR_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
      mark_as_advanced(GAR_NCCL_LIBRARY)
      if(GAR_NCCL_LIBRARY)
        # Where the loader does not find it by its name.
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/runtime/transports/nccl/nccl_library.cpp
                                    PROPERTIES COMPILE_DEFINITIONS GAR_NCCL_PATH="${GAR_NCCL_LIBRARY}")
      endif()
      set_target_properties(gar_nccl PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME nccl)
      target_include_directories(gar_nccl PRIVATE ${PROJECT_SOURCE_DIR}/src)
      target_include_directories(gar_nccl SYSTEM PRIVATE ${GAR_NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
      target_link_libraries(
        gar_nccl
        PUBLIC gar_cuda
        PRIVATE $<BUILD_INTERFACE:gar_warnings> $<BUILD_INTERFACE:gar_fmt>)
      install(TARGETS gar_nccl EXPORT gar-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
      message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, with NCCL")
    else()
      message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}; no NCCL (nccl.h): gar::nccl is not built")
    endif()
  endif()
endmacro()
