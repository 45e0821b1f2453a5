// Decodes images. libjpeg, libpng and libwebp are linked by a library of its own, libeasydel_media.so, which is opened
// when an image is first decoded.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "easydel/media/image.h"

namespace easydel::media {

// What libeasydel_media.so does. Several threads may call at once.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  // Fills `out`, whose size is the header's. UserError "where: ...": the file is broken or cut off.
  virtual void decode(std::span<const uint8_t> file, const ImageHeader& header, const std::string& where,
                      Image& out) = 0;
  // As a PNG file without loss.
  virtual std::string png(const Image& image) = 0;
  virtual std::string versions() = 0;  // "libjpeg 62, libpng 1.6.39, libwebp 1.2.4"
};

// The pixels of Pillow's convert("RGB"), which drops alpha and does not turn the image. UserError as
// read_image_header(), if the file is broken or cut off, or if this program was built without the libraries.
Image decode_image(std::span<const uint8_t> file, const std::string& where);

// decode_image() as Exif's orientation has it upright, which `datasets` does, too.
Image decode_upright(std::span<const uint8_t> file, const std::string& where);

// Loads libeasydel_media.so (next to libeasydel_base.so) on the first call; thread-safe. UserError: it is not there.
ImageDecoder& image_decoder();
bool image_decoder_is_there();  // whether the library's file exists

// image_decoder() from a file of one's own.
ImageDecoder& load_image_decoder(const std::filesystem::path& path);

}  // namespace easydel::media
