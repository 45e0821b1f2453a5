// The decoders of libeasydel_media.so: the only files that include libjpeg, libpng and libwebp. `out` has the size of
// the header and room for its pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "easydel/media/image.h"

namespace easydel::media {

void decode_jpeg(std::span<const uint8_t> file, const std::string& where, Image& out);
void decode_png(std::span<const uint8_t> file, const std::string& where, Image& out);
void decode_webp(std::span<const uint8_t> file, const std::string& where, Image& out);
std::string encode_png(const Image& image);
// Names and versions of the libraries.
std::string jpeg_version();
std::string png_version();
std::string webp_version();

[[noreturn]] void refuse_broken(const std::string& where, ImageForm form, const std::string& why);

}  // namespace easydel::media
