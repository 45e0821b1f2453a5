// The reader of tar archives of rows out of any bytes: an error, or rows, and after an error nothing more.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "easydel/base/error.h"
#include "easydel/data/rows.h"

namespace easydel::data {
extern const FileSource webdataset_source;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  const int file = ::memfd_create("tar", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != ssize_t(size)) std::abort();
  for (const bool passes_over : {false, true}) {
    data::ReadOptions options;
    if (passes_over) options.on_bad_row = [](const UserError&) {};
    try {
      data::webdataset_source.read("/proc/self/fd/" + std::to_string(file), options, [](data::Row row) {
        if (!row.fields.find("__key__") || row.where.empty()) std::abort();
        return true;
      });
    } catch (const UserError&) {
    }
  }
  ::close(file);
  return 0;
}
