#include "easydel/elarge/core.h"

#include <dlfcn.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::elarge {
namespace {

std::filesystem::path folder_of_this_library() {
  Dl_info info = {};
  check(::dladdr(reinterpret_cast<const void*>(&core), &info) != 0, "dladdr does not know libeasydel_base.so");
  return std::filesystem::path(info.dli_fname).parent_path();
}

std::filesystem::path path_of_core() { return folder_of_this_library() / "libeasydel_core.so"; }

void* load() {
  const std::filesystem::path path = path_of_core();
  // Never unloaded: running torch's destructors would cost time and gain nothing.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char* const why = ::dlerror();
    refuse(path.string(), str("cannot be loaded: ", why ? why : "unknown reason"),
           "it holds everything that computes; build it, or set LD_LIBRARY_PATH to the torch it was built against");
  }
  return library;
}

}  // namespace

void* core_symbol(const char* name) {
  static void* const library = load();
  void* const symbol = ::dlsym(library, name);
  if (!symbol)
    refuse(path_of_core().string(), str("has no ", name, ": it belongs to another version"), "rebuild easydel");
  return symbol;
}

Core& core() {
  using Entry = Core* (*)();
  static Core& one = *reinterpret_cast<Entry>(core_symbol("easydel_core_entry"))();
  return one;
}

bool core_is_there() { return files::exists(path_of_core()); }

}  // namespace easydel::elarge
