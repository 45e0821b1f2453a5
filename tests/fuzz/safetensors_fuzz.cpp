// Any bytes as a safetensors file: the header is refused or right.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "easydel/base/error.h"
#include "easydel/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  try {
    auto header = weights::parse_header(std::as_bytes(std::span(data, size)), "fuzz");
    for (auto& [name, entry] : header.tensors)
      if (entry.end < entry.begin || header.data_begin + entry.end > size) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
