// Arbitrary bytes as a file of torch.save: refused, or each of its tensors can be read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "easydel/base/error.h"
#include "easydel/weights/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  try {
    const weights::TorchFile file(std::as_bytes(std::span(data, size)), "fuzz");
    unsigned sum = 0;
    for (const std::string& name : file.names())
      for (const std::byte byte : file.at(name).bytes) sum += std::to_integer<unsigned>(byte);
    volatile unsigned read = sum;
    (void)read;
  } catch (const UserError&) {
  }
  return 0;
}
