// PNG: W3C "Portable Network Graphics", section 5. JPEG: ITU T.81, annex B. WebP: RFC 9649. Orientation:
// Exif 2.3, 4.6.4.
#include "easydel/media/image_header.h"

#include <array>
#include <optional>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::media {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr const char* remedy = "the file is cut off or broken: fetch it again, or drop the row";

bool begins(Bytes bytes, std::string_view with, size_t at = 0) {
  return bytes.size() >= at + with.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, with.size()) == with;
}

// Numbers of a file whose end may be anywhere.
class Reader {
 public:
  Reader(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  uint64_t big(size_t at, size_t count) const { return number(at, count, true); }
  uint64_t little(size_t at, size_t count) const { return number(at, count, false); }
  Bytes part(size_t at, size_t count) const {
    need(at, count);
    return bytes_.subspan(at, count);
  }

 private:
  void need(size_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) refuse(where_, "the image ends in its header", remedy);
  }
  uint64_t number(size_t at, size_t count, bool big) const {
    need(at, count);
    uint64_t out = 0;
    for (size_t i = 0; i < count; ++i) out = out << 8 | bytes_[big ? at + i : at + count - 1 - i];
    return out;
  }
  Bytes bytes_;
  const std::string& where_;
};

// The orientation in a block of Exif; 1 if it has none, or is broken: it is only a hint.
int orientation_of(Bytes exif) {
  if (begins(exif, std::string_view("Exif\0\0", 6))) exif = exif.subspan(6);
  const bool is_big = begins(exif, std::string_view("MM\0*", 4));
  if (!is_big && !begins(exif, std::string_view("II*\0", 4))) return 1;
  const std::string where;
  const Reader reader(exif, where);
  const auto number = [&](size_t at, size_t count) {
    return size_t(is_big ? reader.big(at, count) : reader.little(at, count));
  };
  constexpr size_t entry_bytes = 12, orientation_tag = 0x112, short_type = 3;
  try {
    const size_t table = number(4, 4);
    for (size_t i = 0; i < number(table, 2); ++i) {
      const size_t entry = table + 2 + i * entry_bytes;
      if (number(entry, 2) != orientation_tag || number(entry + 2, 2) != short_type) continue;
      const size_t value = number(entry + 8, 2);
      return value >= 1 && value <= 8 ? int(value) : 1;
    }
  } catch (const UserError&) {
  }
  return 1;
}

ImageHeader png_header(Bytes file, const std::string& where) {
  const Reader reader(file, where);
  if (reader.big(8, 4) != 13 || !begins(file, "IHDR", 12))
    refuse(where, "the PNG image does not begin with its header", remedy);
  ImageHeader out;
  out.form = ImageForm::png;
  out.width = int64_t(reader.big(16, 4)), out.height = int64_t(reader.big(20, 4));
  constexpr size_t signature = 8, around_chunk = 12;
  for (size_t at = signature; at + around_chunk <= file.size();) {
    const size_t bytes = size_t(reader.big(at, 4));
    if (bytes > file.size() - at - around_chunk) break;  // the decoder says so
    if (begins(file, "eXIf", at + 4)) out.orientation = orientation_of(reader.part(at + 8, bytes));
    at += bytes + around_chunk;
  }
  return out;
}

ImageHeader jpeg_header(Bytes file, const std::string& where) {
  const Reader reader(file, where);
  ImageHeader out;
  out.form = ImageForm::jpeg;
  constexpr uint64_t fill = 0xff, end = 0xd9, scan = 0xda, app1 = 0xe1;
  for (size_t at = 2;;) {
    if (reader.big(at, 1) != fill) refuse(where, "the JPEG image has bytes that belong to no segment", remedy);
    const uint64_t marker = reader.big(at + 1, 1);
    if (marker == fill) {
      ++at;
      continue;
    }
    const bool has_no_length = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (has_no_length) {
      at += 2;
      continue;
    }
    if (marker == end || marker == scan) refuse(where, "the JPEG image does not say its size", remedy);
    const size_t bytes = size_t(reader.big(at + 2, 2));
    const bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) {
      out.height = int64_t(reader.big(at + 5, 2)), out.width = int64_t(reader.big(at + 7, 2));
      return out;
    }
    if (bytes < 2) refuse(where, "the JPEG image has a segment without a length", remedy);
    const Bytes segment = reader.part(at + 4, bytes - 2);
    if (marker == app1 && begins(segment, std::string_view("Exif\0\0", 6))) out.orientation = orientation_of(segment);
    at += 2 + bytes;
  }
}

ImageHeader webp_header(Bytes file, const std::string& where) {
  const Reader reader(file, where);
  ImageHeader out;
  out.form = ImageForm::webp;
  constexpr size_t first_chunk = 12, chunk_header = 8;
  const size_t payload = first_chunk + chunk_header;
  if (begins(file, "VP8X", first_chunk)) {
    out.width = int64_t(reader.little(payload + 4, 3)) + 1, out.height = int64_t(reader.little(payload + 7, 3)) + 1;
    for (size_t at = first_chunk; at + chunk_header <= file.size();) {
      const size_t bytes = size_t(reader.little(at + 4, 4));
      if (bytes > file.size() - at - chunk_header) break;
      if (begins(file, "EXIF", at)) out.orientation = orientation_of(reader.part(at + chunk_header, bytes));
      at += chunk_header + bytes + bytes % 2;
    }
  } else if (begins(file, "VP8L", first_chunk)) {
    const uint64_t sizes = reader.little(payload + 1, 4);
    out.width = int64_t(sizes & 0x3fff) + 1, out.height = int64_t(sizes >> 14 & 0x3fff) + 1;
  } else if (begins(file, "VP8 ", first_chunk)) {
    out.width = int64_t(reader.little(payload + 6, 2) & 0x3fff);
    out.height = int64_t(reader.little(payload + 8, 2) & 0x3fff);
  } else {
    refuse(where, "the WebP image does not begin with an image", remedy);
  }
  return out;
}

// Formats that are known and not decoded.
std::optional<std::string_view> other_format(Bytes file) {
  struct Magic {
    std::string_view bytes;
    size_t at;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  static constexpr std::array all{Magic{"GIF8"sv, 0, "GIF"},         Magic{"II*\0"sv, 0, "TIFF"},
                                  Magic{"MM\0*"sv, 0, "TIFF"},       Magic{"II+\0"sv, 0, "TIFF"},
                                  Magic{"MM\0+"sv, 0, "TIFF"},       Magic{"BM"sv, 0, "BMP"},
                                  Magic{"ftypavif"sv, 4, "AVIF"},    Magic{"ftypheic"sv, 4, "HEIC"},
                                  Magic{"ftypmif1"sv, 4, "HEIC"},    Magic{"\0\0\0\x0cjP  "sv, 0, "JPEG 2000"},
                                  Magic{"\xff\x0a"sv, 0, "JPEG XL"}, Magic{"\0\0\0\x0cJXL "sv, 0, "JPEG XL"},
                                  Magic{"8BPS"sv, 0, "Photoshop"},   Magic{"\0\0\1\0"sv, 0, "ICO"},
                                  Magic{"%PDF"sv, 0, "PDF"},         Magic{"<svg"sv, 0, "SVG"}};
  for (const Magic& magic : all)
    if (begins(file, magic.bytes, magic.at)) return magic.name;
  return std::nullopt;
}

ImageHeader header_of(Bytes file, const std::string& where) {
  if (begins(file, "\x89PNG\r\n\x1a\n")) return png_header(file, where);
  if (begins(file, "\xff\xd8\xff")) return jpeg_header(file, where);
  if (begins(file, "RIFF") && begins(file, "WEBP", 8)) return webp_header(file, where);
  if (file.empty()) refuse(where, "the image is empty", "fetch it again, or drop the row");
  if (const auto name = other_format(file))
    refuse(where, str(*name, " images are not read"), "convert it to PNG, JPEG or WebP");
  refuse(where, "is not a PNG, JPEG or WebP image", "convert it, or name another field with pixel_field");
}

}  // namespace

std::string_view name_of(ImageForm form) {
  switch (form) {
    case ImageForm::png:
      return "PNG";
    case ImageForm::jpeg:
      return "JPEG";
    case ImageForm::webp:
      return "WebP";
  }
  throw Bug("an image format without a name");
}

ImageHeader read_image_header(Bytes file, const std::string& where) {
  const ImageHeader out = header_of(file, where);
  if (out.width < 1 || out.height < 1)
    refuse(where, str("the image has ", out.width, " x ", out.height, " pixels"), "drop the row");
  if (out.width > max_pixels / out.height)
    refuse(where, str("the image has ", out.width, " x ", out.height, " pixels; ", max_pixels, " are read at most"),
           "make it smaller, or drop the row");
  return out;
}

}  // namespace easydel::media
