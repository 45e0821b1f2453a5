// PNG by libpng, both ways.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/media/decoders.h"

namespace easydel::media {
namespace {

// libpng's errors come back by longjmp; nothing between has a destructor.
struct Reading {
  std::span<const uint8_t> rest;
  char error[128] = {};
};

void leave(png_structp library, png_const_charp why) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(library));
  std::strncpy(reading.error, why, sizeof reading.error - 1);
  png_longjmp(library, 1);
}
void ignore(png_structp, png_const_charp) {}

void give_bytes(png_structp library, png_bytep to, size_t count) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(library));
  if (count > reading.rest.size()) png_error(library, "it ends too early");
  std::memcpy(to, reading.rest.data(), count);
  reading.rest = reading.rest.subspan(count);
}

struct Lines {
  std::vector<uint8_t> values;  // of one channel of 16 bits; else empty
  std::vector<png_bytep> rows;
  int bits = 8, color = PNG_COLOR_TYPE_RGB;
};

bool read_lines(png_structp library, png_infop info, Lines& lines, Image& out) {
  if (setjmp(png_jmpbuf(library)) != 0) return false;
  png_set_user_limits(library, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(library, info);
  // Pillow does not look at the sums of the pixels' chunks either; zlib's own sum is checked.
  png_set_crc_action(library, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  if (int64_t{png_get_image_width(library, info)} != out.width ||
      int64_t{png_get_image_height(library, info)} != out.height)
    png_error(library, "it has two sizes");
  lines.bits = png_get_bit_depth(library, info);
  lines.color = png_get_color_type(library, info);
  int64_t bytes = 3;  // of a pixel in its row
  if (lines.color == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(library);  // indices beyond the palette are black, in Pillow, too
    png_set_strip_alpha(library);
  } else if (lines.color == PNG_COLOR_TYPE_GRAY && lines.bits == 16) {
    bytes = 2;
  } else {
    if (lines.bits < 8) png_set_expand_gray_1_2_4_to_8(library);
    if (lines.bits == 16) png_set_strip_16(library);
    if ((lines.color & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(library);
    if ((lines.color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(library);
  }
  png_set_interlace_handling(library);
  png_read_update_info(library, info);
  if (int64_t(png_get_rowbytes(library, info)) != bytes * out.width)
    png_error(library, "its lines have another length");
  if (bytes != 3) lines.values.resize(size_t(bytes * out.width * out.height));
  uint8_t* const to = bytes == 3 ? out.pixels.data() : lines.values.data();
  lines.rows.resize(size_t(out.height));
  for (int64_t y = 0; y < out.height; ++y) lines.rows[size_t(y)] = to + y * bytes * out.width;
  png_read_image(library, lines.rows.data());
  return true;
}

void write_bytes(png_structp library, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(library))->append(reinterpret_cast<const char*>(bytes), count);
}

}  // namespace

void decode_png(std::span<const uint8_t> file, const std::string& where, Image& out) {
  Reading reading{file};
  Lines lines;
  png_structp library = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, leave, ignore);
  png_infop info = library ? png_create_info_struct(library) : nullptr;
  check(info != nullptr, "libpng does not start");
  png_set_read_fn(library, &reading, give_bytes);
  const bool is_whole = read_lines(library, info, lines, out);
  png_destroy_read_struct(&library, &info, nullptr);
  if (!is_whole) refuse_broken(where, ImageForm::png, reading.error);
  // Pillow cuts 16 bits of grey off at 255.
  uint8_t* to = out.pixels.data();
  for (size_t i = 0; i < lines.values.size(); i += 2, to += 3)
    std::fill_n(to, 3, lines.values[i] == 0 ? lines.values[i + 1] : uint8_t{255});
}

std::string encode_png(const Image& image) {
  std::string out;
  Reading errors;
  png_structp library = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, leave, ignore);
  png_infop info = library ? png_create_info_struct(library) : nullptr;
  check(info != nullptr, "libpng does not start");
  if (setjmp(png_jmpbuf(library)) != 0) throw Bug(std::string("libpng: ") + errors.error);
  png_set_write_fn(library, &out, write_bytes, nullptr);
  png_set_IHDR(library, info, png_uint_32(image.width), png_uint_32(image.height), 8, PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(library, info);
  for (int64_t y = 0; y < image.height; ++y)
    png_write_row(library, const_cast<png_bytep>(image.pixels.data() + y * image.width * 3));
  png_write_end(library, info);
  png_destroy_write_struct(&library, &info);
  return out;
}

std::string png_version() { return str("libpng ", png_get_libpng_ver(nullptr)); }

}  // namespace easydel::media
