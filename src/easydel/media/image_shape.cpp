#include "easydel/media/image_shape.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::media {
namespace {

constexpr int64_t channels = 3;
constexpr int fraction_bits = 32 - 8 - 2;  // of the filter's whole numbers

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// The pixels of a line that make each pixel of the resized one, and how much each of them counts.
struct Filter {
  struct Span {
    int64_t first = 0, count = 0;
  };
  std::vector<Span> spans;
  std::vector<int32_t> factors;  // `width` for each span
  int64_t width = 0;
};

Filter filter_for(int64_t from, int64_t to) {
  const double scale = double(from) / double(to);
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  Filter out;
  out.width = int64_t(std::ceil(support)) * 2 + 1;
  out.spans.resize(size_t(to));
  out.factors.resize(size_t(to * out.width));
  std::vector<double> weights(size_t(out.width));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (double(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(int64_t(center - support + 0.5), 0);
    const int64_t count = std::min<int64_t>(int64_t(center + support + 0.5), from) - first;
    double sum = 0;
    for (int64_t x = 0; x < count; ++x)
      sum += weights[size_t(x)] = bicubic((double(x + first) - center + 0.5) * (1.0 / filter_scale));
    for (int64_t x = 0; x < count; ++x) {
      const double weight = (sum != 0 ? weights[size_t(x)] / sum : weights[size_t(x)]) * (1 << fraction_bits);
      out.factors[size_t(i * out.width + x)] = int32_t(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    out.spans[size_t(i)] = {first, count};
  }
  return out;
}

uint8_t clipped(int32_t sum) { return uint8_t(std::clamp(sum >> fraction_bits, 0, 255)); }

// Resizes along one axis: of each line, `to` places that are `step` bytes apart.
void resize_lines(const Image& from, Image& to, const Filter& filter, bool along_rows) {
  const int64_t lines = along_rows ? from.height : from.width * channels;
  const int64_t step = along_rows ? channels : from.width * channels;
  const int64_t places = along_rows ? to.width : to.height;
  for (int64_t place = 0; place < places; ++place) {
    const Filter::Span span = filter.spans[size_t(place)];
    const int32_t* const factors = filter.factors.data() + place * filter.width;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t values = along_rows ? channels : 1;
      const uint8_t* const in = from.pixels.data() + (along_rows ? line * from.width * channels : line);
      uint8_t* const out =
          to.pixels.data() + (along_rows ? (line * to.width + place) * channels : place * to.width * channels + line);
      for (int64_t c = 0; c < values; ++c) {
        int32_t sum = 1 << (fraction_bits - 1);
        for (int64_t x = 0; x < span.count; ++x) sum += in[(span.first + x) * step + c] * factors[x];
        out[c] = clipped(sum);
      }
    }
  }
}

Image blank(int64_t width, int64_t height) {
  Image out{width, height, {}};
  out.pixels.resize(size_t(width * height * channels));
  return out;
}

}  // namespace

Image resized(const Image& image, int64_t width, int64_t height) {
  check(width > 0 && height > 0, "resizing to ", width, " x ", height);
  Image out = image;
  if (width != image.width) {
    out = blank(width, image.height);
    resize_lines(image, out, filter_for(image.width, width), true);
  }
  if (height == image.height) return out;
  Image tall = blank(width, height);
  resize_lines(out, tall, filter_for(image.height, height), false);
  return tall;
}

Image upright(Image image, int orientation) {
  if (orientation == 1) return image;
  const bool turned = orientation >= 5;
  Image out = blank(turned ? image.height : image.width, turned ? image.width : image.height);
  // Where a pixel comes from: mirrored along x, along y.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t from_x = turned ? y : x, from_y = turned ? x : y;
      if (from_right) from_x = image.width - 1 - from_x;
      if (from_below) from_y = image.height - 1 - from_y;
      std::copy_n(image.pixels.data() + (from_y * image.width + from_x) * channels, channels,
                  out.pixels.data() + (y * out.width + x) * channels);
    }
  return out;
}

}  // namespace easydel::media
