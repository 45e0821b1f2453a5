// Headers of images out of any bytes: an error, or a size that may be allocated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/media/image_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  try {
    const media::ImageHeader header = media::read_image_header({data, size}, "image");
    if (header.width < 1 || header.height < 1 || header.width * header.height > media::max_pixels) std::abort();
    if (header.orientation < 1 || header.orientation > 8) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
