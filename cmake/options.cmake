# Options of every target. Warnings are errors. Flags must be equal in all layers: GCC ignores the shared precompiled header
# where they differ.
add_library(easydel_options INTERFACE)
target_compile_options(easydel_options INTERFACE -Wall -Wextra -Werror -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 warns of overlap in every `"text" + std::string` (GCC bug 105651); with a precompiled header also of overflow,
  # of reading past an end and, without torch, of bounds.
  target_compile_options(easydel_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  # g++ collects garbage only once it holds 1 GB, which few files reach: this saves a tenth of its time.
  target_compile_options(easydel_options INTERFACE "SHELL:--param ggc-min-heapsize=1000000")
endif()
target_include_directories(easydel_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(easydel_options INTERFACE EASYDEL_VERSION="${PROJECT_VERSION}")
if(EASYDEL_SANITIZE)
  # With sanitizers, g++ 12 warns of uninitialised members of std::regex and std::function.
  target_compile_options(easydel_options INTERFACE -Wno-maybe-uninitialized)
  # g++ 12 ends in a segmentation fault while it propagates constants through the reference loops of kernels.
  target_compile_options(easydel_options INTERFACE -fno-ipa-cp)
  target_compile_options(easydel_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(easydel_options INTERFACE -fsanitize=address,undefined)
endif()
if(EASYDEL_FUZZ)
  # clang 14 cannot check function types in files with coroutines.
  target_compile_options(easydel_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function)
  target_link_options(easydel_options INTERFACE -fsanitize=address,undefined)
endif()

find_program(EASYDEL_MOLD mold)
if(EASYDEL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(EASYDEL_CCACHE ccache)
if(EASYDEL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache requires this sloppiness to cache files that use a precompiled header.
  # CCACHE_DEPEND: not preprocessed first, which takes a quarter of the time of a compile.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_DEPEND=1
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${EASYDEL_CCACHE})
endif()

if(EASYDEL_FUZZ)
  return()  # no precompiled headers there
endif()

# easydel_precompiled_header(base): the header cmake/base_pch.h, precompiled once for all targets that use it.
function(easydel_precompiled_header name)
  set(target easydel_${name}_pch)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/cmake/${name}_pch.cpp)
  target_link_libraries(${target} PUBLIC easydel_options ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  # Relative to src/, so that ccache shares it between checkouts.
  target_precompile_headers(${target} PRIVATE <../cmake/${name}_pch.h>)
endfunction()
# Without batches, files that need no torch also compile without a precompiled header: each must include what it uses.
function(easydel_use_precompiled_header target name)
  if(EASYDEL_UNITY OR name MATCHES "torch")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    target_precompile_headers(${target} REUSE_FROM easydel_${name}_pch)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT name MATCHES "torch")
      target_compile_options(${target} PRIVATE -Wno-array-bounds)
    endif()
  endif()
endfunction()
easydel_precompiled_header(base)

# Torch's headers, one small precompiled header shared by all layers above `tensor`.
add_library(easydel_torch INTERFACE)
target_include_directories(easydel_torch SYSTEM INTERFACE ${TorchWheel_DIR}/include)
target_compile_definitions(easydel_torch INTERFACE AT_PER_OPERATOR_HEADERS C10_CUDA_NO_CMAKE_CONFIGURE_FILE)
easydel_precompiled_header(torch easydel_torch)
