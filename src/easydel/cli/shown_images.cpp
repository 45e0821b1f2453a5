#include "easydel/cli/shown_images.h"

#include <algorithm>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/media/image_shape.h"
#include "easydel/text/tokenizers/charsmap.h"

namespace easydel::cli {
namespace {

constexpr int64_t columns = 48, most_rows = 32;

bool knows_colors() {
  const char* const said = std::getenv("COLORTERM");
  return said && (std::string_view(said) == "truecolor" || std::string_view(said) == "24bit");
}

// Each character shows two pixels, one above the other.
std::string drawn(const media::Image& image) {
  const int64_t width = std::min(columns, image.width);
  const int64_t rows = std::clamp<int64_t>(image.height * width / image.width / 2, 1, most_rows);
  const media::Image small = media::resized(image, width, rows * 2);
  std::string out;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t* const above = small.pixels.data() + (row * 2 * width + x) * 3;
      const uint8_t* const below = above + width * 3;
      out += str("\x1b[38;2;", int{above[0]}, ";", int{above[1]}, ";", int{above[2]}, ";48;2;", int{below[0]}, ";",
                 int{below[1]}, ";", int{below[2]}, "m\u2580");
    }
    out += "\x1b[0m\n";
  }
  return out;
}

std::string media_type(media::ImageForm form) {
  std::string out = "image/";
  for (const char c : media::name_of(form)) out += char(std::tolower(uint8_t(c)));
  return out;
}

}  // namespace

Value document_of(const data::RowImages& images) {
  Value out = Value::list();
  for (const data::RowImage& image : images.images) {
    const media::ImageHeader header = data::header_of(images, image);
    Value& one = out.items.emplace_back(Value::map());
    one.set("image", Value::text(image.name));
    one.set("format", Value::text(std::string(media::name_of(header.form))));
    one.set("width", Value::integer(header.upright_width()));
    one.set("height", Value::integer(header.upright_height()));
    if (!images.size) continue;
    one.set("resized_width", Value::integer((*images.size)[1]));
    one.set("resized_height", Value::integer((*images.size)[0]));
  }
  return out;
}

std::string shown_images(const data::RowImages& images, Marks marks) {
  std::string out;
  for (const data::RowImage& image : images.images) {
    const media::ImageHeader header = data::header_of(images, image);
    std::string line =
        str(image.name, ": ", header.upright_width(), " x ", header.upright_height(), " ", media::name_of(header.form));
    if (images.size) line += str(", resized to ", (*images.size)[1], " x ", (*images.size)[0]);
    if (marks == Marks::html) {
      out += str("<p>", escaped(line), "</p>\n<img alt=\"\" src=\"data:", media_type(header.form), ";base64,",
                 text::encode_base64(data::image_file(images, image)), "\">\n");
      continue;
    }
    out += line + "\n";
    if (marks == Marks::colors && knows_colors()) out += drawn(data::decoded(images, image));
  }
  return out;
}

}  // namespace easydel::cli
