// Turning and resizing images, bit for bit as Pillow does.
#pragma once

#include "easydel/media/image.h"

namespace easydel::media {

// The image as an orientation of Exif has it upright: ImageOps.exif_transpose.
Image upright(Image image, int orientation);

// Image.resize((width, height)) with its default, a bicubic filter whose support grows when the image shrinks
// (src/libImaging/Resample.c). Sizes are from 1.
Image resized(const Image& image, int64_t width, int64_t height);

}  // namespace easydel::media
