#include "easydel/data/row_images.h"

#include <algorithm>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/row_fields.h"
#include "easydel/media/image_decoder.h"
#include "easydel/media/image_header.h"
#include "easydel/media/image_shape.h"
#include "easydel/text/tokenizers/charsmap.h"

namespace easydel::data {
namespace {

constexpr std::array message_fields_of_rows{"messages", "conversations", "prompt", "completion", "chosen", "rejected"};
constexpr std::array names_of_an_image{"image", "path", "url", "image_url", "base64", "bytes", "data"};

// How the files of the formats begin, GIF and TIFF among them, so that they are refused by name.
bool begins_like_an_image(std::string_view bytes) {
  using namespace std::string_view_literals;
  static constexpr std::array beginnings{"\x89PNG"sv, "\xff\xd8\xff"sv, "RIFF"sv, "GIF8"sv, "II*\0"sv, "MM\0*"sv};
  const bool is_text = bytes.find('\0') == std::string_view::npos;  // a path may begin with GIF8, too
  return !is_text && std::ranges::any_of(beginnings, [&](std::string_view one) { return bytes.starts_with(one); });
}

// The same of these bytes in base64.
bool begins_like_base64(std::string_view text) {
  static constexpr std::array beginnings{"iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD", "SUkqA", "TU0AK"};
  constexpr size_t shortest_image = 40;
  return text.size() >= shortest_image &&
         std::ranges::any_of(beginnings, [&](std::string_view one) { return text.starts_with(one); }) &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r") ==
             std::string_view::npos;
}

class Finder {
 public:
  Finder(Row& row, const ImageRules& rules, const std::filesystem::path& folder)
      : row_(row), rules_(rules), folder_(folder) {}

  void find(RowImages& out) {
    take_field();
    of_field_ = std::exchange(images_, {});
    for (const char* name : message_fields_of_rows)
      if (Value* const messages = row_.fields.find(name); messages && messages->is_list())
        for (Value& message : messages->items) take_parts(message);
    if (parts_without_image_ > 0 && parts_without_image_ != of_field_.size())
      refuse(row_.where,
             str("its messages have ", counted(int64_t(parts_without_image_), "image"), ", and '", field_, "' has ",
                 of_field_.size()),
             "give as many images as there are parts {type: image}");
    if (parts_without_image_ == 0) images_.insert(images_.begin(), of_field_.begin(), of_field_.end());
    if (images_.empty())
      refuse(row_.where, "the row has no image",
             str("name the field with the images by ", rules_.inform, ".pixel_field"));
    out.images = std::move(images_);
    out.field = field_;
    out.field_is_list = is_list_;
  }

 private:
  void take_field() {
    const auto field = std::ranges::find_if(rules_.fields, [&](const auto& name) { return has(row_.fields, name); });
    if (field == rules_.fields.end()) {
      if (rules_.is_needed)
        no_field(row_, rules_.fields.front(), str("name the field with the images by ", rules_.inform, ".pixel_field"));
      return;
    }
    field_ = *field;
    const Value value = *row_.fields.find(field_);
    std::erase_if(row_.fields.entries, [&](const auto& entry) { return entry.first == field_; });
    row_.fields.key_places.clear();
    is_list_ = value.is_list();
    if (!is_list_) return add(value);
    for (const Value& one : value.items) add(one);
  }

  void take_parts(Value& message) {
    Value* content = message.is_map() ? message.find("content") : nullptr;
    if (!content && message.is_map()) content = message.find("value");
    if (!content || !content->is_list()) return;
    for (Value& part : content->items) {
      const Value* const type = part.is_map() ? part.find("type") : nullptr;
      if (!type || (type->scalar != "image" && type->scalar != "image_url")) continue;
      const Value* own = nullptr;
      for (const char* name : names_of_an_image)
        if (const Value* const value = part.find(name); !own && value && !value->is_null()) own = value;
      if (!own) {
        if (parts_without_image_ < of_field_.size()) images_.push_back(of_field_[parts_without_image_]);
        ++parts_without_image_;
      } else {
        const Value* const url = own->is_map() ? own->find("url") : nullptr;
        add(url ? *url : *own);
      }
      Value bare = Value::map();
      bare.set("type", Value::text("image"));
      part = std::move(bare);
    }
  }

  void add(const Value& value) {
    RowImage image;
    image.name = str("image ", seen_ + 1);
    if (value.is_map()) {
      const Value *const bytes = value.find("bytes"), *const path = value.find("path");
      if (bytes && bytes->is_text()) {
        image.bytes = bytes_of(bytes->scalar);
        if (path && path->is_text()) image.name = path->scalar, image.has_path = true;
      } else if (path && path->is_text()) {
        put_path(image, path->scalar);
      } else {
        refuse_form();
      }
    } else if (!value.is_text() || value.scalar.empty()) {
      refuse_form();
    } else if (begins_like_an_image(value.scalar) || begins_like_base64(value.scalar) ||
               value.scalar.starts_with("data:")) {
      image.bytes = bytes_of(value.scalar);
    } else {
      put_path(image, value.scalar);
    }
    images_.push_back(std::move(image));
    ++seen_;
  }

  [[noreturn]] void refuse_form() const {
    refuse(row_.where, str("image ", seen_ + 1, " is neither a path, nor bytes, nor {bytes, path}, nor base64"),
           "give it in one of these forms");
  }

  void put_path(RowImage& image, const std::string& path) const {
    image.name = path, image.has_path = true;
    if (path.starts_with("http://") || path.starts_with("https://"))
      refuse(row_.where, "image '" + path + "': images are not fetched from the network",
             "fetch it, and give its path from the folder of the file that lists it");
    image.file = folder_ / path;
  }

  // Bytes as they are, base64, or a data: address of it.
  std::shared_ptr<const std::string> bytes_of(const std::string& text) const {
    std::string_view coded = text;
    if (coded.starts_with("data:")) {
      const size_t comma = coded.find(";base64,");
      if (comma == std::string_view::npos)
        refuse(row_.where, str("image ", seen_ + 1, " is a data: address without base64"),
               "write it as data:image/png;base64,...");
      coded.remove_prefix(comma + std::string_view(";base64,").size());
    } else if (!begins_like_base64(coded)) {
      return std::make_shared<const std::string>(text);
    }
    std::string letters(coded);
    std::erase_if(letters, [](char c) { return c == '\n' || c == '\r'; });
    try {
      return std::make_shared<const std::string>(text::decode_base64(letters));
    } catch (const UserError&) {
      refuse(row_.where, str("image ", seen_ + 1, " is not base64"), "encode the image's file again");
    }
  }

  Row& row_;
  const ImageRules& rules_;
  const std::filesystem::path& folder_;
  std::vector<RowImage> images_, of_field_;
  std::string field_;
  bool is_list_ = false;
  size_t parts_without_image_ = 0, seen_ = 0;
};

// Errors name the row first, then the image.
template <class Action>
auto naming(const RowImages& row, const RowImage& image, const Action& action) {
  try {
    return action();
  } catch (const UserError& error) {
    refuse(row.where, "image '" + image.name + "': " + error.problem, error.remedy);
  }
}

std::span<const uint8_t> bytes_in(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

}  // namespace

RowImages take_images(Row& row, const ImageRules& rules, const std::filesystem::path& folder) {
  RowImages out;
  out.where = row.where;
  out.size = rules.size;
  Finder(row, rules, folder).find(out);
  return out;
}

std::string image_file(const RowImages& row, const RowImage& image) {
  if (image.bytes) return *image.bytes;
  return naming(row, image, [&] {
    if (!files::exists(image.file))
      refuse(image.name, "there is no such file in " + image.file.parent_path().string(),
             "paths begin in the folder of the file that lists the images");
    if (const auto bytes = files::size(image.file); bytes > max_row_bytes)
      refuse(image.name, str("the file has ", bytes >> 20, " MiB; ", max_row_bytes >> 20, " are read at most"),
             "make it smaller, or drop the row");
    return files::read(image.file);
  });
}

media::ImageHeader header_of(const RowImages& row, const RowImage& image) {
  const std::string file = image_file(row, image);
  return naming(row, image, [&] { return media::read_image_header(bytes_in(file), image.name); });
}

media::Image decoded(const RowImages& row, const RowImage& image) {
  const std::string file = image_file(row, image);
  return naming(row, image, [&] {
    media::Image out = media::decode_upright(bytes_in(file), image.name);
    return row.size ? media::resized(out, (*row.size)[1], (*row.size)[0]) : out;
  });
}

}  // namespace easydel::data
