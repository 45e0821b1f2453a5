#include <array>

#include "easydel/quant/file_format.h"

namespace easydel::quant {

std::span<const FileFormat> file_formats() {
  static const std::array formats = {
      gptq_format(),
      awq_format(),
      bitsandbytes_4bit_format(),
      bitsandbytes_8bit_format(),
      packed_format(),
      fp8_blocks_format(),
      bitnet_format(),
      scaled_format(),
      ggml_format(),
  };
  return formats;
}

}  // namespace easydel::quant
