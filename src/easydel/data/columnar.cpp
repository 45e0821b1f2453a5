#include "easydel/data/columnar.h"

#include <dlfcn.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::data {
namespace {

std::filesystem::path path_of_library() {
  Dl_info info = {};
  check(::dladdr(reinterpret_cast<const void*>(&load_columnar_library), &info) != 0,
        "dladdr does not know libeasydel_base.so");
  return std::filesystem::path(info.dli_fname).parent_path() / "libeasydel_arrow.so";
}

// The wheel's libraries export their own copies of libraries that this program also has (simdjson, in another version),
// so each side is bound to its own. The sanitizers' runtime cannot be combined with that.
#if defined(__SANITIZE_ADDRESS__)
constexpr int how_to_open = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int how_to_open = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

}  // namespace

columnar::Library& load_columnar_library(const std::filesystem::path& path) {
  if (!files::exists(path))
    refuse(path.string(), "is not there: this program was built without Arrow, which reads Parquet and Arrow files",
           "install pyarrow (pip install pyarrow) where torch is and build again, or convert the files to jsonl");
  void* const library = ::dlopen(path.c_str(), how_to_open);
  if (!library) {
    const char* const why = ::dlerror();
    refuse(path.string(), str("cannot be loaded: ", why ? why : "unknown reason"),
           "it reads Parquet and Arrow files; install the pyarrow that it was built with, or build again");
  }
  using Entry = columnar::Library* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "easydel_arrow_entry"));
  if (!entry) refuse(path.string(), "has no easydel_arrow_entry: it belongs to another version", "rebuild easydel");
  return *entry();
}

columnar::Library& columnar_library() {
  static columnar::Library& one = load_columnar_library(path_of_library());
  return one;
}

bool columnar_library_is_there() { return files::exists(path_of_library()); }

bool read_columns(const std::filesystem::path& file, columnar::Form form, const ReadOptions& options,
                  const RowSink& sink) {
  const auto take = [&](Value fields, int64_t number) {
    return sink({std::move(fields), str(file.string(), ":", number)});
  };
  // Row groups and batches before the first row are not decoded.
  int64_t to_begin = options.begin ? options.begin->row + (options.rows_to_skip ? *options.rows_to_skip : 0) : 0;
  const bool more = columnar_library().read(file, form, options.fields, take, options.on_bad_row,
                                            options.begin ? &to_begin : options.rows_to_skip, options.raw_fields);
  if (options.begin && options.rows_to_skip) *options.rows_to_skip = std::min(*options.rows_to_skip, to_begin);
  return more;
}

std::vector<RowPlace> places_in_columns(const std::filesystem::path& file, columnar::Form form) {
  std::vector<RowPlace> out{{}};
  for (const int64_t rows : columnar_library().group_rows(file, form)) out.push_back({out.back().row + rows, 0, 1});
  return out;
}

}  // namespace easydel::data
