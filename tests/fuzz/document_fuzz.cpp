// YAML and JSON out of any bytes: either a document that survives being written and read again, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Value value = parse_yaml(text);
    if (!(parse_yaml(to_yaml(value)) == value)) std::abort();
  } catch (const UserError&) {
  }
  try {
    const Value value = parse_json(text);
    if (!(parse_json(to_json(value)) == value)) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
