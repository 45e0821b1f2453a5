// What kind of image some bytes are, and its size, without decoding it and without any library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "easydel/media/image.h"

namespace easydel::media {

// The pixels that Pillow decodes at most, too: a compressed image may claim any size.
inline constexpr int64_t max_pixels = 178956970;

// UserError "where: ...": another format (GIF, TIFF and others are named), a broken header, no pixels or too many.
ImageHeader read_image_header(std::span<const uint8_t> file, const std::string& where);

}  // namespace easydel::media
