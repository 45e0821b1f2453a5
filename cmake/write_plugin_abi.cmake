# cmake -D root=src/easydel -D output=plugin_abi.h -D version=0.1.0 -P write_plugin_abi.cmake
# Classes of C++ have no interface that a loader could check; so a plug-in carries a digest of all headers, and torch's
# version, as they were when it was compiled.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE headers RELATIVE ${root} ${root}/*.h)
list(SORT headers)
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 ${root}/${header} digest)
  string(APPEND all "${header} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 12 digest)
file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
// What a plug-in and the program that loads it must agree about. Generated from the headers.
#pragma once

#include <bits/c++config.h>
#include <torch/headeronly/version.h>

#if _GLIBCXX_USE_CXX11_ABI == 0
#error "EasyDeL is built with the C++11 ABI of libstdc++"
#endif

namespace easydel::elarge {

inline constexpr const char kPluginAbi[] = "easydel @version@, headers @digest@, torch " TORCH_VERSION;

}  // namespace easydel::elarge
]])
