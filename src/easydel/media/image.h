// An image as an array, and what its header says.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace easydel::media {

// 8 bits a channel, pixels [height, width, 3], red first, rows from the top.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

enum class ImageForm : uint8_t { png, jpeg, webp };
std::string_view name_of(ImageForm form);  // "PNG", "JPEG", "WebP"

struct ImageHeader {
  ImageForm form = ImageForm::png;
  int64_t width = 0, height = 0;  // as the pixels are stored
  // Exif's: 1 upright, 3 upside down, 6 and 8 lying on a side, the even ones below 5 and the odd ones above it
  // mirrored.
  int orientation = 1;
  bool is_turned() const { return orientation >= 5; }  // upright, width and height are exchanged
  int64_t upright_width() const { return is_turned() ? height : width; }
  int64_t upright_height() const { return is_turned() ? width : height; }
};

}  // namespace easydel::media
