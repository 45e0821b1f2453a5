// The images of a row: found in its fields and messages, read, decoded and resized.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/rows.h"
#include "easydel/media/image.h"

namespace easydel::data {

struct RowImage {
  std::string name;                          // for people: its path as the row has it, "image 1" without one
  bool has_path = false;                     // the name is a path
  std::filesystem::path file;                // to read; empty: `bytes`
  std::shared_ptr<const std::string> bytes;  // of the image file
};

struct RowImages {
  // Of parts of messages that are images in their order, those of the field at their parts. Else the field's, and then
  // those of the messages.
  std::vector<RowImage> images;
  std::string field;  // that had images; empty: the messages alone
  bool field_is_list = false;
  std::optional<std::array<int64_t, 2>> size;  // height and width to resize to
  std::string where;                           // of the row
  bool is_alone = false;                       // the row has no text
};

struct ImageRules {
  std::vector<std::string> fields;  // the first one that a row has is taken
  bool is_needed = false;           // every row must have one of the fields
  std::optional<std::array<int64_t, 2>> size;
  std::string inform;  // "mixture.informs[0]", for messages
};

// Takes the images out of the row: its field is dropped, and each part of a message that is an image becomes {type:
// image}. Parts without an image of their own stand for the field's images, in their order. `folder`: of the file that
// lists the row; paths begin there. UserError "file:line: ...": there is no image, or it is none of the known forms.
RowImages take_images(Row& row, const ImageRules& rules, const std::filesystem::path& folder);

// The bytes of the image file. UserError "file:line: image 'x.png': ...".
std::string image_file(const RowImages& row, const RowImage& image);

// Upright, and resized if the inform says so. UserError as image_file(), and as media::decode_upright().
media::Image decoded(const RowImages& row, const RowImage& image);

// Its format, and its size upright, without decoding it. UserError as above.
media::ImageHeader header_of(const RowImages& row, const RowImage& image);

}  // namespace easydel::data
